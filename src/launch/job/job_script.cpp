#include "launch/job/job_script.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/secrets.h"
#include "base/text.h"
#include "emit/slurm_script.h"
#include "emit/slurm_template.h"
#include "launch/job/step.h"
#include "plan/json.h"
#include "sys/files.h"
#include "sys/proc.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The same on every machine (FNV-1a).
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

/// The first text that is not UTF-8, after its place: "/roles/0/workdir: ...".
std::optional<std::string> not_utf8(const Json& json, const std::string& path) {
  if (json.is_string()) {
    const auto& value = json.get_ref<const std::string&>();
    return text::first_invalid_utf8(value) ? std::optional(fmt::format("{}: '{}'", path, value))
                                           : std::nullopt;
  }
  if (!json.is_structured()) return std::nullopt;
  for (const auto& [key, value] : json.items()) {
    if (auto found = not_utf8(value, path + "/" + key)) return found;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> frozen_plan_text(const plan::Plan& plan) {
  Diagnostics diagnostics;
  for (const auto& role : plan.roles) {
    for (const auto& op : role.env) {
      if (op.kind == plan::EnvOp::Kind::unset || !looks_like_secret(op.name)) continue;
      diagnostics
          .error("launch.secret-in-env", {},
                 fmt::format(
                     "{} of role '{}' ({}) looks like a secret, and the plan of a job must not contain one",
                     op.name, role.name, op.origin))
          .hint = fmt::format("declare `secrets: {{{}: env}}`, which reads it where the job runs", op.name);
    }
  }
  if (diagnostics.has_errors()) return std::unexpected(std::move(diagnostics));
  return plan_text(plan);
}

namespace {

Result<emit::Template> template_of(const plan::Slurm& slurm) {
  if (slurm.template_file.empty()) return emit::read_slurm_template(emit::built_in_slurm_template());
  constexpr std::uint64_t kLargest = 1U << 20U;
  auto content = sys::read_regular_file(slurm.template_file, kLargest);
  if (!content) return std::unexpected(content.error());
  return emit::read_slurm_template(
      std::make_shared<const SourceFile>(SourceFile{slurm.template_file, std::move(*content)}));
}

/// The directory of a log, whose path can contain Slurm's patterns.
Result<fs::path> folder_of(const plan::Directive& log, const std::string& job_name) {
  const auto pattern = fs::path(log.value).parent_path().string();
  std::string folder;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%') {
      folder += pattern[at];
      continue;
    }
    const auto kind = pattern.substr(++at, 1);
    if (kind == "%") {
      folder += kind;
    } else if (kind == "u") {
      folder += sys::user_name();
    } else if (kind == "x") {
      folder += job_name;
    } else {
      Diagnostics diagnostics;
      diagnostics
          .error("launch.log-folder", {},
                 fmt::format(
                     "the directory of `{}: {}` ({}) must exist before the job, but Slurm knows %{} only "
                     "once the job exists",
                     log.name, log.value, log.origin, kind))
          .hint = "use only %u and %x in the directory, and the others in the file name";
      return std::unexpected(std::move(diagnostics));
    }
  }
  return folder;
}

/// The directories of Slurm's logs, if a job's directives set them. `name`: of the job, unless the directives
/// set it.
Result<std::vector<fs::path>> log_folders(const std::vector<plan::Directive>& options,
                                          const std::string& name) {
  const auto named = std::ranges::find(options, "job-name", &plan::Directive::name);
  std::vector<fs::path> folders;
  for (const auto& option : options) {
    if (option.name != "output" && option.name != "error") continue;
    auto folder = folder_of(option, named == options.end() ? name : named->value);
    if (!folder) return std::unexpected(folder.error());
    folders.push_back(std::move(*folder));
  }
  return folders;
}

Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return {};
  return failure("launch.log-folder", "cannot create the directory '{}' for Slurm's log: {}", folder.string(),
                 error.message());
}

Result<void> make_log_folders(const std::vector<plan::Directive>& options, const std::string& name) {
  const auto folders = log_folders(options, name);
  if (!folders) return std::unexpected(folders.error());
  for (const auto& folder : *folders) {
    if (auto made = make_folder(folder); !made) return made;
  }
  return {};
}

}  // namespace

Result<std::string> plan_text(const plan::Plan& plan) {
  constexpr std::string_view kReplacement = "\uFFFD";  // what JSON has for invalid bytes
  constexpr int kOneLine = -1;
  auto text = plan::to_text(plan, kOneLine);
  if (const auto found = text.contains(kReplacement) ? not_utf8(plan::to_json(plan), "") : std::nullopt) {
    return failure("launch.plan-text", "the plan cannot be saved because a text in it is not UTF-8: {}",
                   *found);
  }
  return text + "\n";
}

Result<FrozenPlan> freeze_plan(const plan::Plan& plan, const fs::path& runs) {
  auto content = frozen_plan_text(plan);
  if (!content) return std::unexpected(content.error());
  const auto folder = fs::absolute(runs).lexically_normal() / plan.name / "plans";
  const auto file = folder / (hash_of(*content) + ".json");
  return FrozenPlan{std::move(*content), file};
}

Result<void> save(const FrozenPlan& plan) {
  if (const auto made = sys::make_private_folder(plan.file.parent_path()); !made)
    return std::unexpected(made.error());
  return sys::write_file_atomically(plan.file, plan.text);
}

Result<JobScript> make_job_script(const plan::Plan& plan, const fs::path& runs, const std::string& program,
                                  const std::vector<std::string>& arguments) {
  const auto frozen = freeze_plan(plan, runs);
  if (!frozen) return std::unexpected(frozen.error());
  const auto from = template_of(plan.slurm);
  if (!from) return std::unexpected(from.error());
  const auto all = fs::absolute(runs).lexically_normal();
  const auto own = all / plan.name;
  emit::SlurmJob job{
      program, frozen->file, emit::slurm_path(own.string()) + "/slurm-%j.log", {"--runs-dir", all, "--here"}};
  job.arguments.insert(job.arguments.end(), arguments.begin(), arguments.end());
  auto script = emit::slurm_script(plan, job, *from);
  if (!script) return std::unexpected(script.error());
  // The first component runs the script.
  const auto& options =
      plan.slurm.components.empty() ? plan.slurm.directives : plan.slurm.components.front().directives;
  if (const auto made = make_log_folders(options, plan.name); !made) return std::unexpected(made.error());
  if (const auto saved = save(*frozen); !saved) return std::unexpected(saved.error());
  return JobScript{std::move(*script), frozen->file};
}

fs::path borrowing_log(const RunPaths& paths, const std::string& job) {
  return paths.attempt / fmt::format("borrowed-{}.log", job);
}

Result<fs::path> make_borrowing_script(const plan::Plan& plan, const plan::SlurmComponent& pool,
                                       const RunPaths& paths, const std::string& program) {
  const auto from = template_of(plan.slurm);
  if (!from) return std::unexpected(from.error());
  const auto name = fmt::format("{}-{}", plan.name, pool.pools.front());
  const auto logs =
      emit::slurm_path(paths.attempt.string()) + "/" + borrowing_log(paths, "%j").filename().string();
  const auto script = emit::borrowing_script(
      plan, pool, {program, (paths.folder / "plan.json").string(), step_file(paths).string(), logs}, *from);
  if (!script) return std::unexpected(script.error());
  if (const auto made = make_log_folders(pool.directives, name); !made) return std::unexpected(made.error());
  auto file = paths.attempt / fmt::format("borrow-{}.sbatch", pool.pools.front());
  if (const auto written = sys::write_file_atomically(file, *script); !written)
    return std::unexpected(written.error());
  return file;
}

}  // namespace nlaunch::launch
