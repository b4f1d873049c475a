#include "plan/site_check.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/scheduler_traits.h"
#include "base/text.h"
#include "plan/scheduler_part.h"
#include "plan/slurm.h"

namespace nlaunch::plan {
namespace {

using config::EnvEntry;

/// A learner and an engine that need no GPU: everything they get is from the site.
config::Experiment smallest_experiment(const config::Site& site) {
  config::Experiment experiment;
  experiment.name.value = "check";
  experiment.path = std::filesystem::current_path() / "check";
  experiment.nodes.value = traits_of(site.scheduler).this_machine ? 1 : 2;
  for (const auto& [name, kind] : {std::pair{"learner", RoleKind::learner}, {"engine", RoleKind::engine}}) {
    config::Role role;
    role.name.value = name;
    role.kind = kind;
    role.command = {{"true", {}}};
    experiment.roles.push_back(std::move(role));
  }
  return experiment;
}

class Checker {
 public:
  Checker(const config::Site& site, const MachineFacts& facts) : site_(site), facts_(facts) {}

  SiteCheck check() {
    try_plans();
    look_at_match();
    look_at_directives();
    look_at_node();
    for (const auto& row : site_.all_reduce_busbw) look_at_row(row);
    look_at_overlays();
    return std::move(result_);
  }

 private:
  /// A plan already reports errors in an environment or a directive; each error is reported once.
  void try_plans() {
    const auto experiment = smallest_experiment(site_);
    std::vector<std::vector<std::string>> choices{{}};
    for (const auto& overlay : site_.overlays) choices.push_back({overlay.name.value});
    std::set<std::string> told;
    for (const auto& with : choices) {
      const auto plan = build(experiment, site_, facts_, {{}, 0, with, {}});
      if (plan) {
        result_.libraries = plan->libraries;
        continue;
      }
      for (const auto& item : plan.error().items()) {
        if (told.insert(render(item)).second) result_.findings.add(item);
      }
    }
  }

  void look_at_match() {
    const auto& match = site_.match;
    if (!match.any()) return;
    const std::pair<const char*, const std::optional<std::string>*> globs[] = {
        {"slurm_cluster", &match.slurm_cluster},
        {"hostname", &match.hostname},
        {"beaker_cluster", &match.beaker_cluster},
        {"file", &match.file},
        {"gpu", &match.gpu}};
    bool narrow = false;
    for (const auto& [key, glob] : globs) {
      if (!*glob) continue;
      if (text::trim(**glob) != **glob || (*glob)->empty()) {
        warn("plan.match", match.span, fmt::format("'match.{}' is '{}', which matches nothing", key, **glob))
            .hint = "remove the surrounding blanks, or the key";
      }
      narrow = narrow || (*glob)->find_first_not_of('*') != std::string::npos || (*glob)->empty();
    }
    if (!narrow) {
      warn("plan.match", match.span, "'match' matches every machine that has the named properties").hint =
          "it conflicts with every other profile that matches; narrow it, or remove it and use --site";
    }
    if (match.slurm_cluster && match.beaker_cluster) {
      warn("plan.match", match.span, "'match' requires a Slurm job that is also a Beaker job").hint =
          "all conditions must match: keep one";
    }
  }

  void look_at_directives() {
    const auto* part = find_part(site_.scheduler);
    const bool own = part != nullptr && part->options != nullptr;
    const auto known = own ? part->options() : sbatch_options();
    const auto program = own ? traits_of(site_.scheduler).submit : "sbatch";
    for (const auto& [name, value] : site_.directives) {
      if (std::ranges::find(known, name.value) != known.end() || !is_own(name.span) || refused(name.span))
        continue;
      const auto near = text::nearest(name.value, known);
      warn(own ? fmt::format("plan.{}-unknown", site_.scheduler) : "plan.slurm-unknown", name.span,
           fmt::format("{} has no known option --{}", program, name.value))
          .hint =
          near ? fmt::format("did you mean {}?", *near)
               : fmt::format(
                     "this is fine for an option of a newer {} or of a plugin; `{} --help` lists the options",
                     own ? traits_of(site_.scheduler).title : "Slurm", program);
    }
    if (!site_.directives.empty() && !traits_of(site_.scheduler).directives &&
        is_own(site_.directives.front().first.span)) {
      warn("plan.site-scheduler", site_.directives.front().first.span,
           fmt::format("directives are for sbatch, but the scheduler is {}", site_.scheduler))
          .hint = "write scheduler: {kind: slurm, ...}";
    }
  }

  void look_at_node() {
    if (!site_.gpus || site_.bus_ids.empty() || site_.bus_ids.size() == site_.gpus->value) return;
    if (!is_own(site_.bus_ids.front().span)) return;
    warn("plan.site-gpus", site_.bus_ids.front().span,
         fmt::format("'node.bus_ids' has {}, but 'node.gpus' is {}",
                     text::count(site_.bus_ids.size(), "bus id"), site_.gpus->value))
        .hint = "write one for each GPU of a node, in PCI order";
  }

  void look_at_row(const config::Expectation& row) {
    if (!is_own(row.span)) return;
    constexpr std::uint32_t kMostNodes = 10'000;
    const auto most = traits_of(site_.scheduler).this_machine ? 1 : kMostNodes;
    const auto never = [&](const std::string& why) {
      warn("plan.expectation", row.span, "this expectation never applies: " + why);
    };
    if (row.gpus_per_node && site_.gpus && *row.gpus_per_node > site_.gpus->value) {
      never(fmt::format("it is for {} on each node, but a node has {}",
                        text::count(*row.gpus_per_node, "GPU"), site_.gpus->value));
    }
    if (row.nodes) {
      bool fits = false;
      for (std::uint32_t nodes = 1; nodes <= most && !fits; ++nodes)
        fits = row.nodes->contains(Version{{nodes}});
      if (!fits) {
        never(most == 1 ? fmt::format("it is for {} nodes, but this site is one machine", row.nodes->str())
                        : fmt::format("no number of nodes is {}", row.nodes->str()));
      }
    }
    if (row.min <= 0) warn("plan.expectation", row.span, "this expectation has no effect: 'min' is 0");
  }

  void look_at_overlays() {
    std::map<std::string, std::string> always;
    for (const auto& entry : site_.env) {
      always.erase(entry.name.value);
      if (entry.kind == EnvEntry::Kind::set && entry.when.always())
        always[entry.name.value] = entry.value.value;
    }
    for (const auto& overlay : site_.overlays) {
      if (!is_own(overlay.name.span)) continue;
      if (overlay.env.empty() && overlay.set.empty()) {
        warn("plan.overlay", overlay.name.span,
             fmt::format("the overlay '{}' sets nothing", overlay.name.value));
      }
      for (const auto& entry : overlay.env) {
        const auto found = always.find(entry.name.value);
        if (entry.kind != EnvEntry::Kind::set || found == always.end() || found->second != entry.value.value)
          continue;
        warn("plan.overlay", entry.name.span,
             fmt::format("the overlay '{}' sets {}={}, which the site already sets", overlay.name.value,
                         entry.name.value, entry.value.value));
      }
    }
  }

  Diagnostic& warn(std::string id, const SourceSpan& span, std::string message) {
    return result_.findings.warning(std::move(id), span, std::move(message));
  }

  [[nodiscard]] bool is_own(const SourceSpan& span) const { return span && span.file->name == site_.path; }

  /// True for a location that already has an error.
  [[nodiscard]] bool refused(const SourceSpan& span) const {
    return std::ranges::any_of(result_.findings.items(),
                               [&](const Diagnostic& item) { return item.span.where() == span.where(); });
  }

  const config::Site& site_;
  const MachineFacts& facts_;
  SiteCheck result_;
};

}  // namespace

SiteCheck check_site(const config::Site& site, const MachineFacts& facts) {
  return Checker(site, facts).check();
}

}  // namespace nlaunch::plan
