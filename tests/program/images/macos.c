/* An import that is called and pointed to, a pointer that needs a rebase, zero-filled data. */
extern int getpid(void);
int table[4] = {1, 2, 3, 4};
int zero[10];
int *pointer = &table[2];
int (*function)(void) = getpid;
int main(void) {
  zero[1] = *pointer;
  return function() + getpid();
}
