#include "plan/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Options whose value is nlaunch's own, with what says the same.
struct Owned {
  std::string_view name;
  std::string_view instead;
};
constexpr std::array kOwned{
    Owned{"nodes", "`nodes:` of the experiment, or --nodes"},
    Owned{"ntasks", "one agent runs on each node"},
    Owned{"ntasks-per-node", "one agent runs on each node"},
    Owned{"export", "the environment of a process is the plan's business: `env:`"},
    Owned{"export-file", "the environment of a process is the plan's business: `env:`"},
    Owned{"signal", "`walltime: {signal: ..., before: ...}`"},
    Owned{"open-mode", "it is always `append`"},
    Owned{"requeue", "`walltime: {then: requeue}`"},
    Owned{"no-requeue", "`walltime: {then: stop}`"},
    Owned{"chdir", "`workdir:`"},
    Owned{"wrap", "the script is nlaunch's"},
    Owned{"array", "one run is one job; --set makes variants"},
    Owned{"parsable", "nlaunch reads the answer itself"},
    Owned{"wait", "nlaunch follows by itself"},
    Owned{"test-only", "`nlaunch render` shows the script"},
};

/// Options that sbatch does not take without a value, a blank before and after each. One that is not among
/// them may be a flag of a newer Slurm.
constexpr std::string_view kWithValue =
    " account acctg-freq bb bbf begin cluster cluster-constraint clusters comment constraint"
    " container core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot"
    " dependency distribution error exclude extra extra-node-info gid gpu-bind gpu-freq gpus"
    " gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input job-name"
    " kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu"
    " mincpus network nodefile nodelist ntasks-per-core ntasks-per-gpu ntasks-per-socket output"
    " partition power prefer priority profile qos reservation sockets-per-node switches thread-spec"
    " threads-per-core time time-min tmp uid wait-all-nodes wckey ";

/// Those that need none.
constexpr std::string_view kWithoutValue =
    "contiguous exclusive get-user-env hold ignore-pbs nice no-kill overcommit oversubscribe quiet reboot"
    " spread-job use-min-nodes verbose";

bool is_option_name(std::string_view name) {
  return !name.empty() && std::islower(static_cast<unsigned char>(name.front())) != 0 &&
         std::ranges::all_of(name, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return std::islower(byte) != 0 || std::isdigit(byte) != 0 || c == '-';
         });
}

class DirectiveMerger {
 public:
  DirectiveMerger(const std::function<std::string(const config::Text&)>& resolve, Diagnostics& diagnostics)
      : resolve_(resolve), diagnostics_(diagnostics) {}

  void add(const config::Text& name, const config::Text& value) {
    const auto option = std::ranges::find(options_, name.value, &Directive::name);
    if (!check_name(name)) return;
    auto text = resolve_(value);
    if (!check_value(text, value.span) || !check_flag(name.value, text, value.span)) return;
    if (option != options_.end()) options_.erase(option);
    if (text == "false") return;
    options_.push_back({name.value, text == "true" ? "" : std::move(text), value.span.where()});
  }

  std::vector<Directive> take() && { return std::move(options_); }

 private:
  bool check_name(const config::Text& name) {
    const auto owned = std::ranges::find(kOwned, name.value, &Owned::name);
    if (owned != kOwned.end()) {
      diagnostics_
          .error("plan.slurm-owned", name.span,
                 fmt::format("'{}' is set by nlaunch and cannot be given here", name.value))
          .hint = owned->instead;
      return false;
    }
    if (is_option_name(name.value)) return true;
    diagnostics_.error("plan.slurm-option", name.span, fmt::format("'{}' is no option of sbatch", name.value))
        .hint = "the long name without its dashes: partition, gpus-per-node, time";
    return false;
  }

  bool check_value(const std::string& value, const SourceSpan& span) {
    if (value.empty()) {
      // An option without its argument would take the next directive for one.
      diagnostics_.error("plan.slurm-value", span, "a directive needs a value").hint =
          "`true` makes a flag; a line that is not wanted is left out";
      return false;
    }
    if (text::printable(value) != value) {
      diagnostics_.error("plan.slurm-value", span, fmt::format("'{}' cannot stand in an #SBATCH line", value))
          .hint = "line breaks and other control characters, and what is not UTF-8, are not allowed there";
      return false;
    }
    if (value.find_first_of("$`") == std::string::npos) return true;
    diagnostics_
        .error("plan.slurm-value", span,
               fmt::format("'{}' would stay as it is: no shell reads #SBATCH lines", value))
        .hint = "${env.NAME} is a variable where nlaunch was called; Slurm knows %j, %u and %x in paths";
    return false;
  }

  bool check_flag(const std::string& name, const std::string& value, const SourceSpan& span) {
    if (value != "true" || !sbatch_needs_value(name)) return true;
    diagnostics_
        .error("plan.slurm-value", span,
               fmt::format("'{}' needs a value, and `true` would make it a flag", name))
        .hint = fmt::format("`{0}: VALUE`; `{0}: false` takes away the site's", name);
    return false;
  }

  const std::function<std::string(const config::Text&)>& resolve_;
  Diagnostics& diagnostics_;
  std::vector<Directive> options_;
};

}  // namespace

Slurm make_slurm(const config::Experiment& experiment, const config::Site& site,
                 const std::function<std::string(const config::Text&)>& resolve, Diagnostics& diagnostics) {
  Slurm slurm;
  DirectiveMerger builder(resolve, diagnostics);
  for (const auto& [name, value] : site.directives) builder.add(name, value);
  for (const auto& [name, value] : experiment.slurm) builder.add(name, value);
  slurm.directives = std::move(builder).take();
  for (const auto& program : site.submit) slurm.submit.push_back(resolve(program));
  if (slurm.submit.empty()) slurm.submit.emplace_back("sbatch");
  for (const auto& option : site.srun) slurm.srun.push_back(resolve(option));
  slurm.bad_nodes_ttl = site.bad_nodes_ttl.value_or(std::chrono::days(7));
  return slurm;
}

bool sbatch_needs_value(std::string_view name) {
  return kWithValue.contains(fmt::format(" {} ", name));
}

std::vector<std::string> sbatch_options() {
  auto options = text::split(text::trim(kWithValue), ' ');
  for (auto& flag : text::split(kWithoutValue, ' ')) options.push_back(std::move(flag));
  return options;
}

ordered_json to_json(const Slurm& slurm) {
  ordered_json directives = ordered_json::array();
  for (const auto& option : slurm.directives) {
    directives.push_back({{"name", option.name}, {"value", option.value}, {"origin", option.origin}});
  }
  return {{"directives", std::move(directives)},
          {"submit", slurm.submit},
          {"srun", slurm.srun},
          {"template", slurm.template_file},
          {"spares", slurm.spares},
          {"bad_nodes", slurm.bad_nodes},
          {"bad_nodes_ttl_ms", slurm.bad_nodes_ttl.count()}};
}

Slurm slurm_from_json(const json& from) {
  Slurm slurm;
  for (const auto& option : from.at("directives")) {
    slurm.directives.push_back({option.at("name"), option.at("value"), option.at("origin")});
  }
  from.at("submit").get_to(slurm.submit);
  from.at("srun").get_to(slurm.srun);
  from.at("template").get_to(slurm.template_file);
  from.at("spares").get_to(slurm.spares);
  from.at("bad_nodes").get_to(slurm.bad_nodes);
  slurm.bad_nodes_ttl = Duration(from.at("bad_nodes_ttl_ms").get<Duration::rep>());
  return slurm;
}

ordered_json to_json(const Walltime& walltime) {
  return {{"signal", walltime.signal},
          {"before_ms", walltime.before.count()},
          {"then", name_of(walltime.then)},
          {"max", walltime.max},
          {"min_runtime_ms", walltime.min_runtime.count()}};
}

Walltime walltime_from_json(const json& from) {
  Walltime walltime;
  from.at("signal").get_to(walltime.signal);
  walltime.before = Duration(from.at("before_ms").get<Duration::rep>());
  for (const auto then : {Walltime::Then::stop, Walltime::Then::requeue, Walltime::Then::chain}) {
    if (from.at("then") == name_of(then)) walltime.then = then;
  }
  from.at("max").get_to(walltime.max);
  walltime.min_runtime = Duration(from.at("min_runtime_ms").get<Duration::rep>());
  return walltime;
}

}  // namespace nlaunch::plan
