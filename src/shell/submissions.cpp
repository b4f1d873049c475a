#include "shell/submissions.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "base/text.h"
#include "shell/pipes.h"
#include "shell/srun.h"
#include "sys/files.h"

namespace nlaunch::shell {

std::optional<Submission> Submissions::read(const ProgramStart& start, const Words& argv) const {
  Submission job;
  const auto end = words_of_sbatch(argv);
  job.options = {argv.begin() + 1, argv.begin() + static_cast<std::ptrdiff_t>(end)};
  job.folder = option(argv, end, "-D", "--chdir").value_or(start.folder);
  job.line = places_.line_of(start.pid);
  read_script(start, argv, end, job);
  if (job.text.empty()) return std::nullopt;
  const auto exported = option(argv, end, "", "--export");
  job.variables = variables(start, exported ? text::split(*exported, ',') : Words{"ALL"});
  job.files = written_.files();
  for (const auto& folder : written_.folders()) job.files.push_back({folder + "/", "", true});
  return job;
}

/// Its text, and what belongs to that; the text stays empty if it is unknown. `end`: the words of sbatch
/// itself.
void Submissions::read_script(const ProgramStart& start, const Words& argv, std::size_t end,
                              Submission& job) const {
  if (const auto wrapped = option(argv, end, "", "--wrap")) {
    job.text = "#!/bin/sh\n" + *wrapped + "\n";
  } else if (end < argv.size()) {
    const auto path = layer_.resolved(std::filesystem::path(start.folder) / argv[end], true, start.pid);
    constexpr std::uint64_t kLargest = 1U << 20U;
    const auto text = sys::read_regular_file(layer_.map_to_read(path.value_or("")), kLargest);
    if (!path || !text) return;
    job.script = *path;
    job.text = *text;
    job.arguments = rest(argv, end + 1);
  } else if (has_own_input(start, places_.parent_of(start.pid))) {
    job.text = here_document(start).value_or("");
  }
}

/// The variables that the script set and that the job gets. `exported`: of --export.
std::vector<std::string> Submissions::variables(const ProgramStart& start, const Words& exported) const {
  auto before = environment_of(request_, own_);
  std::erase_if(before, [&](const auto& entry) {
    return std::ranges::find(request_.variables, entry) != request_.variables.end();
  });
  std::vector<std::string> variables;
  for (const auto& entry : start.environment) {
    const bool is_new = !is_own_variable(entry) && std::ranges::find(before, entry) == before.end() &&
                        !entry.starts_with("PWD=") && !entry.starts_with("SLURM_");
    const auto name = entry.substr(0, entry.find('='));
    if (is_new && (has(exported, "ALL") || has(exported, name)))
      variables.push_back(without_own(entry, own_));
  }
  for (const auto& one : exported)
    if (one.find('=') != std::string::npos) variables.push_back(one);
  return variables;
}

}  // namespace nlaunch::shell
