# Cross-compiles with the compilers that scripts/release/toolchain.sh lays into NLAUNCH_RELEASE_TREE/toolchain: zig's
# Clang and libc++ against a glibc of a fixed age. What is linked in comes from NLAUNCH_RELEASE_TREE/prefix alone.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES NLAUNCH_RELEASE_TREE NLAUNCH_RELEASE_ARCH)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${NLAUNCH_RELEASE_ARCH})
set(CMAKE_C_COMPILER ${NLAUNCH_RELEASE_TREE}/toolchain/clang)
set(CMAKE_CXX_COMPILER ${NLAUNCH_RELEASE_TREE}/toolchain/clang++)
set(CMAKE_AR ${NLAUNCH_RELEASE_TREE}/toolchain/ar)
set(CMAKE_RANLIB ${NLAUNCH_RELEASE_TREE}/toolchain/ranlib)
set(CMAKE_STRIP ${NLAUNCH_RELEASE_ARCH}-linux-gnu-strip) # zig's objcopy cannot
set(CMAKE_CUDA_COMPILER ${NLAUNCH_RELEASE_TREE}/cuda/bin/nvcc)
# CUDA's compiler refuses libc++. The host half of device code is a few calls of the runtime, which g++ compiles to
# objects that want nothing of libstdc++ that libc++abi does not have under the same name.
set(CMAKE_CUDA_HOST_COMPILER ${NLAUNCH_RELEASE_ARCH}-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH ${NLAUNCH_RELEASE_TREE}/prefix ${NLAUNCH_RELEASE_TREE}/cuda)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR ${NLAUNCH_RELEASE_TREE}/toolchain/emulator)
