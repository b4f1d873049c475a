int ncclGetVersion(int* version);
int ncclGroupStart(void);

__attribute__((visibility("default"))) int use_version(void) {
  int version = 0;
  return ncclGetVersion(&version) == 0 ? version : 0;
}

__attribute__((visibility("default"))) int use_group(void) {
  return ncclGroupStart();
}

#ifdef NEWER
int ncclCommWindowRegister(void);

__attribute__((visibility("default"))) int use_window(void) {
  return ncclCommWindowRegister();
}
#endif
