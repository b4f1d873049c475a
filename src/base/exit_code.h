#pragma once
#include <string_view>

/// The exit codes of nlaunch. A run that nobody stops exits with the code of the process that failed first
/// (128 + signal if a signal killed it); `summary.json` records which process it was, because a program can
/// use the same numbers.
namespace nlaunch::exit_code {

inline constexpr int ok = 0;
inline constexpr int usage = 64;              ///< invalid command line
inline constexpr int bad_input = 65;          ///< experiment, site or plan is invalid
inline constexpr int preflight_refused = 69;  ///< a check failed before anything started
inline constexpr int internal = 70;           ///< internal error, or a result could not be written
inline constexpr int not_ready = 72;          ///< a role never became ready
inline constexpr int audit_refused = 73;      ///< stopped by `audit: {mode: enforce}`
inline constexpr int walltime = 75;           ///< stopped at the walltime, to be continued
inline constexpr int stalled = 124;      ///< aborted after a stall, or because a process stopped responding
inline constexpr int interrupted = 130;  ///< stopped by SIGINT
inline constexpr int quit = 131;         ///< stopped immediately by SIGQUIT
inline constexpr int terminated = 143;   ///< stopped by SIGTERM

/// `nlaunch preflight` has its own codes.
inline constexpr int preflight_warned = 1;  ///< under --strict
inline constexpr int preflight_failed = 2;
inline constexpr int preflight_unknown = 3;

/// So does `nlaunch bench`.
inline constexpr int bench_missed = 2;
inline constexpr int bench_failed = 3;

/// So does `nlaunch diagnose`.
inline constexpr int diagnose_found = 1;

/// The same, in words for users.
struct Meaning {
  int code;
  std::string_view when;
};
inline constexpr Meaning kMeanings[] = {
    {ok, "success"},
    {usage, "command line usage error"},
    {bad_input, "the experiment, the site, the plan or a linted file is invalid"},
    {preflight_refused, "the preflight refused the run: nothing was started"},
    {internal, "internal error, or a result could not be written"},
    {not_ready, "a role never became ready"},
    {audit_refused, "`audit: {mode: enforce}` stopped the run: a process uses the wrong libnccl"},
    {walltime, "stopped at the walltime, to be continued"},
    {stalled, "aborted after a stall, or because a process stopped responding"},
    {interrupted, "stopped by SIGINT"},
    {quit, "stopped immediately by SIGQUIT (Ctrl-\\)"},
    {terminated, "stopped by SIGTERM"},
};
inline constexpr Meaning kPreflightMeanings[] = {
    {ok, "all checks pass"},
    {preflight_warned, "warnings, under --strict"},
    {preflight_failed, "a check failed"},
    {preflight_unknown, "a check could not run"},
};

inline constexpr Meaning kDiagnoseMeanings[] = {
    {ok, "no problems found"},
    {diagnose_found, "a problem was found"},
};

inline constexpr Meaning kBenchMeanings[] = {
    {ok, "measured, and every budget and target was met"},
    {bench_missed, "a budget or a target was missed"},
    {bench_failed, "an arm has no good repeat"},
};

}  // namespace nlaunch::exit_code
