/* An import, a pointer that needs a base relocation, zero-filled data. */
__declspec(dllimport) void __stdcall ExitProcess(unsigned);
int table[4] = {1, 2, 3, 4};
int zero[10];
int *pointer = &table[2];
void wWinMainCRTStartup(void) {
  zero[1] = *pointer;
  ExitProcess(zero[2]);
}
