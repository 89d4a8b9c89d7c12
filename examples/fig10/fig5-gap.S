# Two call sites and a procedure with two exits. The runs (site 1, exit 1) and (site 2, exit 2) show every instruction
# except the call of the target, but only (site 2, exit 1) leads there. Folding as printed in Fig. 5 gives return edges
# only to exits and call sites seen together, and so loses that path.
.include "start.inc"
program:
    call choice
    test al, 1
    jz second_site
    call two_exits
    ret
second_site:
    call two_exits
    cmp eax, 1
    jne leave_program
    call reached
leave_program:
    ret

two_exits:
    call choice
    test al, 1
    jz second_exit
    mov eax, 1
    ret
second_exit:
    mov eax, 2
    ret
