#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// The kind of a process for the preload scope. The library in the process and nlaunch's audit of it from
/// outside use the same function.
enum nlaunch_kind {
  NLAUNCH_PROGRAM,   ///< does the work: what a role's command is for
  NLAUNCH_WRAPPER,   ///< becomes or starts the program: a shell, env, numactl, uv, a profiler
  NLAUNCH_LAUNCHER,  ///< starts ranks, which have RANK and LOCAL_RANK: torchrun, accelerate, deepspeed
};

/// Decides by the path of the executable (or "") and the NULL-terminated arguments. A Python that runs a
/// wrapper's or launcher's script or module counts as that wrapper or launcher.
enum nlaunch_kind nlaunch_kind_of(const char* executable, const char* const* argv);

#ifdef __cplusplus
}
#endif
