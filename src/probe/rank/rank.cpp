#include <unistd.h>

#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "base/exit_code.h"
#include "probe/output.h"
#include "probe/question.h"
#include "probe/rank/session.h"

namespace nlaunch::probe {
namespace {

struct Options {
  std::string spec;
  unsigned index = 0;
  bool transport_only = false;
  std::map<std::string, std::string> ids;  ///< that arrived before the program started over
};

std::optional<Options> read_options(std::span<const std::string> arguments) {
  Options options;
  bool indexed = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--spec" && has_value) {
      options.spec = arguments[++i];
    } else if (arguments[i] == "--index" && has_value) {
      const auto& text = arguments[++i];
      indexed = std::from_chars(text.data(), text.data() + text.size(), options.index).ec == std::errc();
    } else if (arguments[i] == "--id" && i + 2 < arguments.size()) {
      options.ids[arguments[i + 1]] = arguments[i + 2];
      i += 2;
    } else if (arguments[i] == "--transport-only") {
      options.transport_only = true;
    } else {
      return std::nullopt;
    }
  }
  return indexed && !options.spec.empty() ? std::optional(options) : std::nullopt;
}

int complain(const std::string& text) {
  emit({{"event", "error"}, {"phase", "identity"}, {"group", ""}, {"kind", "unavailable"}, {"text", text}});
  return exit_code::usage;
}

/// `rank --spec FILE --index I [--transport-only] [--id KEY HEX]...`: one rank of a preflight. Prints, one
/// JSON line each:
///   identity   rank, pid, hostname, host_id, host_id_source, visible_devices, gpu (null: none), library
///              (then waits for "go [BYTES]" on standard input, the largest message that all ranks have room
///              for; its end means: give up)
///   joining    group
///   id         group, key, id: for the group's other ranks, which receive it as "id KEY HEX" on standard
///   input joined     group, seconds result     group, op, bytes, elements, wrong [, first_wrong, expected,
///   found, fault, rank], seconds,
///              busbw (bytes/s); fault: missing, twice (a rank's term in a sum), received (from it), ""
///   workload   group, workload, wrong, seconds (of each step)
///   drill      group, drill, launched, ended (completed, waiting, blocked: a call did not return, failed),
///              text, wrong, seconds; "done" follows, and the rank stays until its standard input ends
///   choice     group, op, bytes, algorithm, protocol, channels
///   transport  group, network, pairs [{from, to, via, detail, channels}], or error
///   error      phase (identity, join, collective), group, kind (unavailable, failed, deadline), text
///   phase      name, seconds: for a timeline, whenever one ends
///   done       seconds
/// Ranks in "pairs" and a result's "rank" are the communicator's. The exit code is 0 after "done", 3 at a
/// deadline.
int run_rank(Arguments arguments) {
  const auto options = read_options(arguments);
  if (!options) return complain("usage: nlaunch-probe rank --spec FILE --index I");
  auto spec = read_spec(options->spec);
  if (!spec) return complain(text_of(spec.error()));
  if (options->index >= spec->ranks.size()) {
    return complain(
        fmt::format("--index {}: {} has {} ranks", options->index, options->spec, spec->ranks.size()));
  }
  // The sizes have been tried: there may be no room for them now.
  for (auto& group : spec->groups) {
    if (options->transport_only) group.sizes.clear();
  }
  Session session(std::move(*spec), options->index, Mail(options->ids));
  bool well = false;
  if (options->transport_only) {
    well = session.open() && session.find_transports({});
  } else {
    std::vector<std::string> again{"nlaunch-probe", "rank"};
    again.insert(again.end(), arguments.begin(), arguments.end());
    again.emplace_back("--transport-only");
    well = session.identify() && session.measure() && session.find_transports(again);
  }
  if (well) session.done();
  if (well && session.drilled()) session.linger();
  // Communicators are not destroyed: that takes half a second, and the exit of the process frees everything
  // they hold.
  ::_exit(well ? exit_code::ok : 1);
}

const Registered<Question> rank_question{{
    .order = 40,
    .name = "rank",
    .arguments = "--spec FILE --index I",
    .what = "one rank of a preflight; waits for \"go\" on standard input",
    .at_least = 4,
    .run = run_rank,
}};

}  // namespace
}  // namespace nlaunch::probe
