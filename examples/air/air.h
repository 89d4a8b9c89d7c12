/* What the drivers of this folder share: unknown values from outside, the lock whose discipline is checked, and the
   place that is reached when the discipline is broken (taken while held, released while free). */
#ifndef AIR_H
#define AIR_H

typedef unsigned char byte;
typedef unsigned int word;

int choice(void);   /* a fresh 32-bit value at every call */
void reached(void); /* the target */
void program(void); /* called once; when it returns, the run ends */

void spin_lock(void);
void spin_unlock(void);
void spin_lock_irq(void);
void spin_unlock_irq(void);
word spin_lock_irqsave(void);
void spin_unlock_irqrestore(word flags);

#endif
