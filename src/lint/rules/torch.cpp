#include <fmt/format.h>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/values.h"
#include "shell/words.h"

/// Variables of PyTorch and Ray that hide errors or cost speed.
namespace nlaunch::lint {
namespace {

bool is_yes(const std::string& value) {
  const auto word = text::lower(value);
  return word == "1" || word == "true" || word == "yes" || word == "y" || word == "t";
}

void check_blocking_wait(const LintInput& input, Report& report) {
  for (const auto* name : {"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"}) {
    each_value(
        input, report, name, [&](const Environment&, const Setting& setting, const std::string& value) {
          if (!is_yes(value)) return;
          report.error(
              setting.span,
              {fmt::format("{}={} disables PyTorch's watchdog", setting.name, value),
               "without the watchdog no other collective times out, nothing is dumped, and a hang lasts "
               "until the walltime",
               "leave it out: the default of TORCH_NCCL_ASYNC_ERROR_HANDLING already aborts a hang", ""});
        });
  }
}

const Registered<Rule> blocking_wait_rule{{
    .order = 230,
    .name = "blocking-wait",
    .title = "TORCH_NCCL_BLOCKING_WAIT=1",
    .explain = "It was the way to get timeouts before PyTorch had a watchdog. Now it disables the "
               "watchdog: no timeout except for the call that waits, no dump, no flight recorder.",
    .source = "PyTorch ProcessGroupNCCL.cpp",
    .check = check_blocking_wait,
}};

void check_errors_ignored(const LintInput& input, Report& report) {
  for (const auto* name : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"}) {
    each_value(
        input, report, name, [&](const Environment&, const Setting& setting, const std::string& value) {
          const auto read = read_number(value);
          if (!read.whole || read.value != 0) return;
          report.warning(setting.span,
                         {fmt::format("{}=0: a collective that fails or times out does not abort the process",
                                      setting.name),
                          "the other ranks wait until the time limit",
                          "leave it out: the default, 3, aborts the process", ""});
        });
  }
}

const Registered<Rule> errors_ignored_rule{{
    .order = 232,
    .name = "errors-ignored",
    .title = "TORCH_NCCL_ASYNC_ERROR_HANDLING=0",
    .explain = "PyTorch's watchdog detects that a collective failed or took too long. With 0 it does nothing "
               "about it.",
    .source = "PyTorch ProcessGroupNCCL.hpp, ErrorHandlingMode",
    .check = check_errors_ignored,
}};

void check_recorder_path(const LintInput& input, Report& report) {
  for (const auto& environment : input.environments) {
    report.of(environment.name);
    if (environment.may("TORCH_FR_DUMP_TEMP_FILE", [](const auto&) { return true; }) ||
        environment.may("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", [](const auto&) { return true; })) {
      continue;
    }
    for (const auto* name : {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}) {
      const auto* setting = environment.find(name);
      if (setting == nullptr || setting->unset || setting->value == "0") continue;
      report.warning(
          setting->span,
          {fmt::format("{} turns the flight recorder on, but nothing sets where it writes", name),
           "dumps go to the node's /tmp, or to ~/.cache/torch where the next job overwrites them",
           "set TORCH_FR_DUMP_TEMP_FILE and TORCH_NCCL_DEBUG_INFO_TEMP_FILE to a path in the job's own "
           "directory; "
           "the rank is appended",
           ""});
      break;
    }
  }
}

const Registered<Rule> recorder_path_rule{{
    .order = 240,
    .name = "recorder-path",
    .title = "a flight recorder that writes where nobody looks",
    .explain = "The prefix of its files is /tmp/nccl_trace_rank_ or a directory in ~/.cache, depending on "
               "the release: the files are lost with the node, or overwritten by the next job.",
    .source = "PyTorch FlightRecorder.cpp",
    .check = check_recorder_path,
}};

void check_monitor_off(const LintInput& input, Report& report) {
  each_value(input, report, "TORCH_NCCL_ENABLE_MONITORING",
             [&](const Environment&, const Setting& setting, const std::string& value) {
               const auto word = text::lower(value);
               if (word != "0" && word != "false" && word != "f" && word != "n" && word != "no") return;
               report.warning(
                   setting.span,
                   {fmt::format("{}={} turns off the monitor that ends a process whose watchdog hangs",
                                setting.name, value),
                    "a hang in a CUDA call or in the store then lasts until the job's time limit",
                    "leave it out; if it ended a healthy run, raise TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", ""});
             });
}

const Registered<Rule> monitor_off_rule{{
    .order = 238,
    .name = "monitor-off",
    .title = "PyTorch's monitor of its watchdog is off",
    .explain = "The monitor thread dumps the flight recorder and ends the process if the watchdog shows no "
               "heartbeat, for example because a CUDA call does not return.",
    .source = "PyTorch ProcessGroupNCCL.cpp, HeartbeatMonitor",
    .check = check_monitor_off,
}};

void check_recorder_size(const LintInput& input, Report& report) {
  constexpr long long kMany = 1'000'000;
  for (const auto* name : {"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"}) {
    each_value(input, report, name,
               [&](const Environment&, const Setting& setting, const std::string& value) {
                 const auto read = read_number(value);
                 if (!read.whole || read.value < kMany) return;
                 report.warning(
                     setting.span,
                     {fmt::format("{}={} counts entries, not bytes", setting.name, value),
                      "each holds a stack trace: the process grows without bound, and a dump takes minutes",
                      fmt::format("{}=2000", setting.name), ""});
               });
  }
}

const Registered<Rule> recorder_entries_rule{{
    .order = 100,
    .name = "recorder-entries",
    .title = "a flight recorder size given in bytes instead of entries",
    .explain = "TORCH_NCCL_TRACE_BUFFER_SIZE and TORCH_FR_BUFFER_SIZE are numbers of entries. 67108864, "
               "meant as 64 MiB, is 67 million stack traces.",
    .source = "PyTorch FlightRecorder.hpp (max_entries_)",
    .check = check_recorder_size,
}};

void check_noset_devices(const LintInput& input, Report& report) {
  const Version reads_it{{2, 54}};
  each_value(
      input, report, "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
      [&](const Environment& environment, const Setting& setting, const std::string& value) {
        const auto* release = environment.release("Ray");
        if (!is_word(value, {"0", "false", "no", "off"}) || (release != nullptr && *release >= reads_it))
          return;
        report.error(setting.span, {fmt::format("{}={} means true before Ray 2.54", setting.name, value),
                                    "Ray treats any non-empty value as true and does not set "
                                    "CUDA_VISIBLE_DEVICES: actors share GPUs",
                                    fmt::format("unset {}", setting.name), ""});
      });
}

const Registered<Rule> noset_devices_rule{{
    .order = 110,
    .name = "noset-devices",
    .title = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES=0, which older Ray treats as true",
    .explain = "Up to 2.53, Ray checks only whether the variable is empty, not its value.",
    .source = "Ray python/ray/_private/accelerators/nvidia_gpu.py",
    .check = check_noset_devices,
}};

void check_launch_blocking(const LintInput& input, Report& report) {
  for (const auto* name : {"CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL"}) {
    each_value(
        input, report, name, [&](const Environment&, const Setting& setting, const std::string& value) {
          const auto read = read_number(value);
          if (!setting.exported || !read.whole || read.value == 0) return;
          report.warning(
              setting.span,
              {fmt::format("{}={} waits for every kernel to finish", setting.name, value),
               "kernels and communication no longer overlap: it is for finding an error, and can hide a "
               "timing error",
               "leave it out of production runs", ""});
        });
  }
}

const Registered<Rule> launch_blocking_rule{{
    .order = 242,
    .name = "launch-blocking",
    .title = "CUDA_LAUNCH_BLOCKING=1 left on",
    .explain =
        "Each launch then waits until its kernel has finished. That shows which call an error comes from, "
        "but is much slower. HIP_LAUNCH_BLOCKING and AMD_SERIALIZE_KERNEL do the same on AMD GPUs.",
    .source = "CUDA C++ programming guide, environment variables; HIP docs, environment variables",
    .check = check_launch_blocking,
}};

void check_distributed_debug(const LintInput& input, Report& report) {
  each_value(input, report, "TORCH_DISTRIBUTED_DEBUG",
             [&](const Environment&, const Setting& setting, const std::string& value) {
               if (text::lower(value) != "detail" || !setting.exported) return;
               report.warning(setting.span,
                              {"TORCH_DISTRIBUTED_DEBUG=DETAIL checks every collective of every rank",
                               "the ranks first compare shapes and order over a second process group: each "
                               "collective waits for all of them",
                               "once the error is found, leave it out or use INFO", ""});
             });
}

const Registered<Rule> distributed_debug_rule{{
    .order = 244,
    .name = "distributed-debug",
    .title = "TORCH_DISTRIBUTED_DEBUG=DETAIL left on",
    .explain =
        "DETAIL wraps each process group in one that compares what the ranks are about to do. It is for "
        "finding ranks that call different collectives, and is too slow for normal runs.",
    .source =
        "PyTorch docs, torch.distributed, Debugging; torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp",
    .check = check_distributed_debug,
}};

void check_old_launcher(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    if (!program.works || !shell::has(program.words, "torch.distributed.launch")) continue;
    const bool by_variable = shell::has(program.words, "--use_env") || shell::has(program.words, "--use-env");
    return report.note(
        program.span,
        {"torch.distributed.launch is deprecated: torchrun takes the same options",
         by_variable ? "a later release of PyTorch may not have it"
                     : "it adds --local-rank=N to the arguments of the program; before PyTorch 2.0 that was "
                       "--local_rank, so what reads one of the two fails with the other",
         by_variable ? "torchrun, without --use_env" : "torchrun, and LOCAL_RANK in the program", ""});
  }
}

const Registered<Rule> old_launcher_rule{{
    .order = 476,
    .name = "old-launcher",
    .title = "torch.distributed.launch",
    .explain = "torchrun replaced it in PyTorch 1.10. It passes the local rank in LOCAL_RANK only, and no "
               "longer in an argument, whose spelling changed in 2.0.",
    .source = "torch/distributed/launch.py",
    .check = check_old_launcher,
}};

void check_local_world_size(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    const auto size = text::whole_number<std::uint32_t>(variable(program, "LOCAL_WORLD_SIZE")).value_or(0);
    if (!program.works || launcher_of(program) || program.nodes_of_step < 2 || size <= program.local_tasks)
      continue;
    return report.warning(place_of(input, program, "LOCAL_WORLD_SIZE"),
                          {fmt::format("LOCAL_WORLD_SIZE is {}, but a node has {}", size,
                                       text::count(program.local_tasks, "task")),
                           "it is the number of processes of one node: libraries that divide ranks by it "
                           "take several nodes for one",
                           "LOCAL_WORLD_SIZE=$SLURM_NTASKS_PER_NODE", ""});
  }
}

const Registered<Rule> local_world_size_rule{{
    .order = 539,
    .name = "local-world-size",
    .title = "LOCAL_WORLD_SIZE above the tasks of a node",
    .explain = "torchrun sets it to the number of its processes on the node. A script that starts its ranks "
               "with srun has to do the same.",
    .source = "torchrun documentation, Environment Variables",
    .check = check_local_world_size,
}};

}  // namespace
}  // namespace nlaunch::lint
