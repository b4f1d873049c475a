#include "plan/flux.h"

#include <fmt/format.h>

#include <array>

#include "plan/directives.h"

namespace nlaunch::plan {
namespace {

constexpr std::string_view kWholeNodes = "a job has whole nodes: use `nodes:` in the experiment, or --nodes";
constexpr std::string_view kEnvironment = "the plan sets the environment of each process: use `env:`";
constexpr std::array kFluxOwned{
    OwnedOption{"nodes", kWholeNodes},
    OwnedOption{"nslots", kWholeNodes},
    OwnedOption{"cores-per-slot", kWholeNodes},
    OwnedOption{"gpus-per-slot", kWholeNodes},
    OwnedOption{"exclusive", kWholeNodes},
    OwnedOption{"env", kEnvironment},
    OwnedOption{"env-remove", kEnvironment},
    OwnedOption{"env-file", kEnvironment},
    OwnedOption{"cwd", "`workdir:`"},
    OwnedOption{"input", "nlaunch reads no input"},
    OwnedOption{"wrap", "nlaunch writes the script"},
    OwnedOption{"quiet", "nlaunch reads the output itself"},
    OwnedOption{"dry-run", "`nlaunch render` shows the script"},
};

/// From flux-batch(1) 0.88.
constexpr std::string_view kFluxWithValue =
    "queue bank time-limit job-name flags output error conf broker-opts dump urgency setopt setattr add-file "
    "begin-time signal requires dependency rlimit";
constexpr std::string_view kFluxFlags = "unbuffered label-io verbose debug";

constexpr DirectiveSyntax kFluxBatch{.scheduler = "flux",
                                     .command = "flux batch",
                                     .line = "a #flux: line",
                                     .examples = "queue, bank, time-limit",
                                     .owned = kFluxOwned,
                                     .with_value = kFluxWithValue,
                                     .without_value = kFluxFlags,
                                     .forbidden = "'\"\\",
                                     .why_forbidden = "is not allowed in a #flux: line",
                                     .hint_forbidden = "remove quotes and backslashes"};

/// Keys of a profile that would have no effect here.
void refuse_keys_of_others(const config::Site& site, Diagnostics& diagnostics) {
  const auto refuse = [&](std::string_view key, const SourceSpan& span) {
    diagnostics
        .error("plan.flux-key", span,
               fmt::format("'scheduler.{}' is for Slurm, but the scheduler is flux", key))
        .hint = "remove it";
  };
  if (!site.srun.empty()) refuse("srun", site.srun.front().span);
  if (site.template_file) refuse("template", site.template_file->span);
  if (site.bad_nodes_file) refuse("bad_nodes", site.bad_nodes_file->span);
}

}  // namespace

void make_flux(const PartInput& input, Plan& plan) {
  auto& flux = plan.flux;
  refuse_keys_of_others(input.site, input.diagnostics);
  DirectiveMerger merger(kFluxBatch, input.resolve, input.diagnostics);
  for (const auto& [name, value] : input.site.directives) merger.add(name, value);
  flux.directives = std::move(merger).take();
  for (auto& [name, value, origin] : flux.directives) {
    if (name == "output" || name == "error") value = input.absolute(value, "");
  }
  for (const auto& program : input.site.submit) flux.submit.push_back(input.resolve(program));
  if (flux.submit.empty()) flux.submit.emplace_back("flux");
}

std::vector<std::string> flux_options() {
  return options_of(kFluxBatch);
}

}  // namespace nlaunch::plan
