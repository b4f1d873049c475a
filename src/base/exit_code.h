#pragma once
#include <string_view>

/// The exit codes of nlaunch. A run that ends by itself gives the code of the process that failed first
/// (128 + signal where a signal ended it); `summary.json` says which it was, since a program may use the
/// same numbers.
namespace nlaunch::exit_code {

inline constexpr int ok = 0;
inline constexpr int usage = 64;              ///< wrong command line
inline constexpr int bad_input = 65;          ///< experiment, site or plan is wrong
inline constexpr int preflight_refused = 69;  ///< a check failed before anything started
inline constexpr int internal = 70;   ///< an error of nlaunch's own, or a result that could not be written
inline constexpr int not_ready = 72;  ///< a role never became ready
inline constexpr int audit_refused = 73;  ///< `audit: {mode: enforce}` ended the run
inline constexpr int walltime = 75;       ///< stopped at the walltime, to be continued
inline constexpr int stalled = 124;       ///< aborted after a stall, or for a process that answers no more
inline constexpr int interrupted = 130;   ///< stopped by SIGINT
inline constexpr int quit = 131;          ///< ended at once by SIGQUIT
inline constexpr int terminated = 143;    ///< stopped by SIGTERM

/// Of `nlaunch preflight`, which has codes of its own.
inline constexpr int preflight_warned = 1;  ///< under --strict
inline constexpr int preflight_failed = 2;
inline constexpr int preflight_unknown = 3;

/// Of `nlaunch bench`, likewise.
inline constexpr int bench_missed = 2;
inline constexpr int bench_failed = 3;

/// Of `nlaunch diagnose`.
inline constexpr int diagnose_found = 1;

/// The same for people.
struct Meaning {
  int code;
  std::string_view when;
};
inline constexpr Meaning kMeanings[] = {
    {ok, "fine"},
    {usage, "wrong usage: the command line"},
    {bad_input, "the experiment, the site, the plan or a linted file is wrong"},
    {preflight_refused, "the preflight refused the run: nothing was started"},
    {internal, "an error of nlaunch's own, or a result that could not be written"},
    {not_ready, "a role never became ready"},
    {audit_refused, "`audit: {mode: enforce}` ended the run: a process has a wrong libnccl"},
    {walltime, "stopped at the walltime, to be continued"},
    {stalled, "aborted after a stall, or for a process that answers no more"},
    {interrupted, "stopped by SIGINT"},
    {quit, "ended at once by SIGQUIT (Ctrl-\\)"},
    {terminated, "stopped by SIGTERM"},
};
inline constexpr Meaning kPreflightMeanings[] = {
    {ok, "all checks pass"},
    {preflight_warned, "warnings, under --strict"},
    {preflight_failed, "a check failed"},
    {preflight_unknown, "a check could not be carried out"},
};

inline constexpr Meaning kDiagnoseMeanings[] = {
    {ok, "nothing wrong found"},
    {diagnose_found, "something wrong was found"},
};

inline constexpr Meaning kBenchMeanings[] = {
    {ok, "measured, and every budget and target held"},
    {bench_missed, "a budget or a target was missed"},
    {bench_failed, "an arm has no good repeat"},
};

}  // namespace nlaunch::exit_code
