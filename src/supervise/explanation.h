#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

/// Why a process failed, where nlaunch knows more than its log says, and what to change: pure functions of
/// the plan and of what was seen on the node.
namespace nlaunch::supervise {

/// What was seen around a process when its readiness check timed out.
struct NotReadySeen {
  std::string check{};                 ///< what was checked, with its values: "http://n1:8000/health"
  std::string last{};                  ///< the result of the last check: "answered 404"
  std::vector<std::string> listens{};  ///< where its processes listen: "0.0.0.0:8000", by port
  std::string answers{};   ///< URL of a usual health path on one of these ports that answers 2xx; empty: none
  std::string stranger{};  ///< who else holds the checked port: "server.py (pid 4711, user alice)"
  std::string remedy{};    ///< what frees it; empty: only the experiment can
  std::string loading{};   ///< the last line of its output that says that it is still loading
};

/// A port that a process wanted, and who holds it.
struct PortTaken {
  std::uint16_t port = 0;
  std::int32_t index = -1;  ///< among the ports that nlaunch gave the process; -1: it is none of them
  std::string holder{};     ///< "server.py (pid 4711, user alice)"
  std::string remedy{};     ///< what frees it; empty: only the experiment can
};

struct Explanation {
  std::string category;  ///< the class of a finding: "not-ready", "port-in-use"
  std::string why;
  std::string fix;
  bool sure = false;  ///< seen; else the most likely of several causes
};

Explanation explain(const plan::Role& role, const std::string& process, const NotReadySeen& seen);
Explanation explain(const plan::Role& role, const std::string& process, const PortTaken& taken);

/// "its check: `http: http://${self.host}:8000/health` (grpo.yaml:9:12); its timeout: 10m (the default)"; of
/// what has to exit, the timeout alone.
std::string check_text(const plan::Ready& ready);

/// The paths under which servers report their health: vLLM and SGLang (/health), TRL's vllm-serve (/health/),
/// the usual names of others, the models of an OpenAI server, and any page.
const std::vector<std::string>& health_paths();

/// Of lines of output, the last one that reports that something is being loaded, downloaded or compiled;
/// empty: none does.
std::string loading_line(const std::vector<std::string>& lines);
/// The ports that lines about a port in use name, in their order; nothing if no line is about one. Only what
/// the output ends with counts, and no line that says that another port is tried: the program went on.
std::optional<std::vector<std::uint16_t>> ports_in_use(const std::vector<std::string>& lines);

}  // namespace nlaunch::supervise
