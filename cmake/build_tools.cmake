# Faster builds with what is installed: ccache, and a linker that is quicker than ld. What is built for another machine, as a
# release is (cmake/zig.cmake), gets them only where they are asked for.
if(NOT CMAKE_CROSSCOMPILING)
  find_program(NLAUNCH_CCACHE ccache)
  find_program(NLAUNCH_MOLD ld.mold)
  find_program(NLAUNCH_LLD ld.lld)
endif()

if(NLAUNCH_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache wants for a precompiled header: ccache(1), "Precompiled headers".
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${NLAUNCH_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  add_compile_options(
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>
    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

if(NLAUNCH_MOLD)
  set(found mold)
elseif(NLAUNCH_LLD)
  set(found lld)
endif()
set(NLAUNCH_LINKER "${found}" CACHE STRING "The linker, as -fuse-ld= takes it; empty: the compiler's own")
if(NLAUNCH_LINKER)
  add_link_options(-fuse-ld=${NLAUNCH_LINKER})
endif()
