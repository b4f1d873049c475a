#include "probe/rank.h"

#include <unistd.h>

#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "base/exit_code.h"
#include "probe/output.h"
#include "probe/session.h"

namespace nlaunch::probe {
namespace {

struct Options {
  std::string spec;
  unsigned index = 0;
  bool transport_only = false;
  std::map<std::string, std::string> ids;  ///< that came before the program started over
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

}  // namespace

int run_rank(std::span<const std::string> arguments) {
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
  // Communicators are not destroyed: that takes half a second, and the end of the process frees all they
  // hold.
  ::_exit(well ? exit_code::ok : 1);
}

}  // namespace nlaunch::probe
