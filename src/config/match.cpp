#include "config/match.h"

#include <glob.h>

#include <algorithm>

#include "base/text.h"
#include "config/profile.h"

namespace nlaunch::config {
namespace {

bool fits(const std::optional<std::string>& glob, const std::string& fact) {
  return !glob || (!fact.empty() && text::glob_match(*glob, fact));
}

bool file_exists(const std::string& pattern) {
  glob_t found{};
  const bool any = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0;
  ::globfree(&found);
  return any;
}

struct Candidate {
  SiteEntry entry;
  SourceSpan match;
};

Diagnostics ambiguous(const std::vector<Candidate>& candidates) {
  Diagnostics problems;
  std::vector<std::string> names;
  for (const auto& candidate : candidates) names.push_back(candidate.entry.name);
  auto& problem = problems.error(
      "site.ambiguous", candidates[0].match,
      fmt::format("{} site profiles match this machine: {}", names.size(), text::join(names, ", ")));
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    problem.notes.push_back({fmt::format("'{}' also matches", names[i]), candidates[i].match});
  }
  problem.hint = fmt::format("choose one: --site {}", names[0]);
  return problems;
}

}  // namespace

Match read_match(const Value& value) {
  Match match;
  match.span = value.span();
  Keys keys(value);
  keys.read("slurm_cluster", match.slurm_cluster);
  keys.read("hostname", match.hostname);
  keys.read("beaker_cluster", match.beaker_cluster);
  keys.read("file", match.file);
  keys.read("gpu", match.gpu);
  keys.finish();
  return match;
}

bool fits(const Match& match, const MatchFacts& facts) {
  const auto is_gpu = [&](const std::string& gpu) { return text::glob_match(*match.gpu, gpu); };
  return match.any() && fits(match.slurm_cluster, facts.slurm_cluster) &&
         fits(match.hostname, facts.hostname) && fits(match.beaker_cluster, facts.beaker_cluster) &&
         (!match.file || file_exists(*match.file)) && (!match.gpu || std::ranges::any_of(facts.gpus, is_gpu));
}

Result<Site> choose_site(const std::vector<std::string>& folders, const MatchFacts& facts,
                         const std::vector<Setting>& settings) {
  Problems problems;
  std::vector<Candidate> candidates;
  for (const auto& entry : list_sites(folders)) {
    if (entry.shadowed) continue;
    const auto root = read_profile(entry, problems);
    if (!root) return std::unexpected(root.error());
    const auto* match = root->find("match");
    if (match != nullptr && fits(read_match(Value(*match, "match", problems)), facts)) {
      candidates.push_back({entry, match->span});
    }
  }
  if (problems.any()) return std::unexpected(problems.take());
  if (candidates.size() > 1) return std::unexpected(ambiguous(candidates));
  if (candidates.empty()) return load_site("local", folders, settings);
  return load_site(
      candidates[0].entry.path == "built in" ? candidates[0].entry.name : candidates[0].entry.path, folders,
      settings);
}

}  // namespace nlaunch::config
