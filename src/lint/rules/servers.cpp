#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Servers that a script starts: vLLM, SGLang, Ray.
namespace nlaunch::lint {
namespace {

using shell::program_name;

void check_same_port(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& programs = input.script->programs;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (!programs[i].works || !programs[i].background || !is_server(programs[i])) continue;
    const auto port = value_of(programs[i], {"--port", "-p"});
    for (std::size_t k = 0; k < i && port; ++k) {
      const auto& before = programs[k];
      const bool by_name =
          std::any_of(programs.begin() + static_cast<std::ptrdiff_t>(k),
                      programs.begin() + static_cast<std::ptrdiff_t>(i), [](const Program& one) {
                        const auto name = program_name(one.words[0]);
                        return name == "pkill" || name == "killall";
                      });
      const bool ended = by_name || shell::had_ended(before.waited, programs[i].waited);
      const bool at_once = before.works && before.background && before.node == programs[i].node && !ended;
      if (!at_once || !is_server(before) || value_of(before, {"--port", "-p"}) != port) continue;
      return report.error(
          programs[i].span,
          {fmt::format("two servers on a node use port {}", text::printable(*port)),
           "the second fails with \"address already in use\", or its requests go to the first",
           "--port $((8000 + i))", ""});
    }
  }
}

const Registered<Rule> same_port_rule{{
    .order = 447,
    .name = "same-port",
    .title = "servers with the same port on a node",
    .explain = "Only one process on a node can listen on a port.",
    .source = "bind(2), EADDRINUSE",
    .check = check_same_port,
}};

void check_too_parallel(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>&) {
    const auto gpus = gpus_of(input, program);
    const bool over_nodes = value_of(program, {"--distributed-executor-backend", "--nnodes"}).has_value();
    const bool on_ray = std::ranges::any_of(
        input.script->programs, [](const Program& other) { return program_name(other.words[0]) == "ray"; });
    if (!is_server(program) || gpus == 0 || over_nodes || on_ray || program.nodes_of_step > 1) return;
    const auto wants = number_of(program, {"--tensor-parallel-size", "--tensor_parallel_size", "-tp", "--tp",
                                           "--tp-size", "--num-shard"})
                           .value_or(1);
    if (wants <= gpus) return;
    report.error(program.span, {fmt::format("the server is configured for {}, but sees {}",
                                            text::count(wants, "GPU"), gpus),
                                "it does not start", fmt::format("a tensor-parallel size of {}", gpus), ""});
  });
}

const Registered<Rule> too_parallel_rule{{
    .order = 448,
    .name = "too-parallel",
    .title = "a server with more tensor-parallel ranks than GPUs",
    .explain = "Each rank of an engine needs its own GPU.",
    .source = "vLLM, Distributed Inference and Serving",
    .check = check_too_parallel,
}};

void check_ray_ends(const LintInput& input, Report& report) {
  if (!input.script || !ran_to_its_end(*input.script)) return;
  const auto& programs = input.script->programs;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto& words = programs[i].words;
    const bool starts =
        programs[i].step && words.size() > 1 && program_name(words[0]) == "ray" && words[1] == "start";
    if (!starts || shell::has(words, "--block") || shell::has(words, "--block=true")) continue;
    const bool goes_on = std::any_of(
        programs.begin() + static_cast<std::ptrdiff_t>(i) + 1, programs.end(), [&](const Program& other) {
          return other.step == programs[i].step && other.rank == programs[i].rank;
        });
    if (goes_on) continue;
    return report.error(
        programs[i].span,
        {"ray start goes to the background, and its task exits",
         "Slurm kills what a step started when its tasks have exited: the node leaves the cluster again",
         "use ray start --block, with srun … &", ""});
  }
}

const Registered<Rule> ray_ends_rule{{
    .order = 449,
    .name = "ray-ends",
    .title = "a Ray node that ends with its step",
    .explain =
        "ray start returns once its processes run in the background. A Slurm step keeps nothing in the "
        "background: --block keeps the task running.",
    .source = "docs.ray.io, Deploying on Slurm; srun(1)",
    .check = check_ray_ends,
}};

void check_fixed_wait(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& programs = input.script->programs;
  const Program* server = nullptr;
  const Program* sleep = nullptr;
  for (const auto& program : programs) {
    const auto name = program_name(program.words[0]);
    const bool ray = name == "ray" && program.words.size() > 1 && program.words[1] == "start";
    if (program.works && (ray || (program.background && is_server(program)))) {
      server = &program;
      sleep = nullptr;
    } else if (server != nullptr && name == "sleep" && !program.background) {
      if (sleep == nullptr) sleep = &program;
    } else if (server != nullptr && !program.works &&
               (name == "curl" || name == "nc" || name == "wget" || name == "ray" ||
                program.words[0].starts_with("/dev/tcp/"))) {
      server = nullptr;  // it asks
    } else if (program.works && server != nullptr && sleep != nullptr) {
      const auto what = program_name(server->words[0]);
      return report.note(
          sleep->span,
          {fmt::format("the script assumes that {} is ready after a fixed time", what),
           "if a model loads more slowly or a node joins later, what follows fails or gets fewer GPUs",
           what == "ray" ? "wait until `ray status` lists all nodes"
                         : "until curl -sf http://HOST:PORT/health; do sleep 5; done",
           ""});
    }
  }
}

const Registered<Rule> fixed_wait_rule{{
    .order = 450,
    .name = "fixed-wait",
    .title = "a fixed delay instead of a readiness check",
    .explain = "How long an engine takes to load depends on the model, the file system and the caches. It "
               "reports "
               "when it is ready.",
    .source = "vLLM, /health; docs.ray.io, ray status",
    .check = check_fixed_wait,
}};

void check_endless_wait(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kBegins(R"re(^\s*(until\s|while\s+(!|true|:|\[)))re");
  static const RE2 kAsks(R"re(\b(curl|wget|nc|ncat)\s|/dev/tcp/|\bray\s+(status|health-check))re");
  static const RE2 kEnds(
      R"re(kill\s+-0|\btimeout\s|\bSECONDS\b|-g[te]\s|-l[te]\s|\(\(|\bexit\b|\breturn\b|--retry|jobs\s)re");
  for (std::uint32_t number = 1; number <= lines.count(); ++number) {
    if (!RE2::PartialMatch(lines.line(number), kBegins)) continue;
    std::string block;
    auto end = number;
    constexpr std::uint32_t kLongest = 30;
    for (; end <= lines.count() && end < number + kLongest; ++end) {
      block += std::string(lines.line(end)) + "\n";
      if (text::trim(lines.line(end)).starts_with("done") ||
          lines.line(end).find("; done") != std::string_view::npos)
        break;
    }
    const auto first = lines.line(number);
    static const RE2 kForEver(R"re(^\s*while\s+(true|:))re");
    const bool for_ever = RE2::PartialMatch(first, kForEver);
    const bool asks = RE2::PartialMatch(for_ever ? std::string_view(block) : first, kAsks);
    // An endless loop with an exit is also a wait; one that checks files is something else.
    const bool is_wait =
        !for_ever || (block.find("break") != std::string::npos && block.find("-f ") == std::string::npos);
    if (!asks || !is_wait || RE2::PartialMatch(block, kEnds)) continue;
    report.note(lines.whole(number), {"this waits forever if the server has died",
                                      "the job holds its nodes until the time limit, without any message",
                                      "add a limit, and kill -0 $PID in the loop", ""});
    return;
  }
}

const Registered<Rule> endless_wait_rule{{
    .order = 451,
    .name = "endless-wait",
    .title = "a wait for a server that may have died",
    .explain = "A server that dies at startup never answers. A polling loop needs a check that the server "
               "is alive, or a limit.",
    .source = "bash(1), until",
    .check = check_endless_wait,
}};

void check_open_dashboard(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    if (program_name(program.words[0]) != "ray" || value_of(program, {"--dashboard-host"}) != "0.0.0.0")
      continue;
    return report.warning(program.span,
                          {"Ray's dashboard is open to everyone who can reach the node",
                           "anyone who can connect can start jobs as you: there is no password",
                           "remove --dashboard-host (default 127.0.0.1), and use a tunnel", ""});
  }
}

const Registered<Rule> open_dashboard_rule{{
    .order = 452,
    .name = "open-dashboard",
    .title = "Ray's dashboard on all interfaces",
    .explain = "The dashboard's port accepts jobs from anyone.",
    .source = "docs.ray.io, Security",
    .check = check_open_dashboard,
}};

}  // namespace
}  // namespace nlaunch::lint
