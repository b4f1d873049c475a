#include "evidence/collect.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/json.h"
#include "sys/addresses.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::evidence {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// Results of sources as they arrive, and how many are still to come. Outlives `collect` together with the
/// threads.
struct Board {
  std::mutex mutex;
  std::condition_variable changed;
  struct Result {
    std::string subject;  ///< empty: the host
    std::string source;
    bool done = false;
    Found found;
  };
  std::vector<Result> results;
  std::size_t open = 0;

  void put(std::size_t index, Found found) {
    const std::lock_guard lock(mutex);
    results[index].done = true;
    results[index].found = std::move(found);
    --open;
    changed.notify_all();
  }
};

/// What the threads share.
struct Work {
  Spec spec;
  Masker masker;
  Clock::time_point end;
  Board board;
};

/// One source, with its place on the board.
struct Job {
  const Source* source = nullptr;
  std::size_t index = 0;
};

Found run(const Source& source, const Work& work, const Subject* subject, const Tree& tree) {
  const auto folder =
      std::filesystem::path(work.spec.folder) / work.spec.host / (subject == nullptr ? "" : subject->name);
  const CollectContext context{work.spec, subject,     tree,
                               folder,    work.masker, std::min(work.end, Clock::now() + source.bound)};
  try {
    return source.collect(context);
  } catch (const std::exception& error) {  // a thread must not terminate the program
    return {{}, {{std::string(source.name), error.what(), ""}}};
  }
}

/// The sources of a process or of the host: the tree is examined first, then each lane has a thread.
void start(const std::shared_ptr<Work>& work, const Subject* subject, std::vector<Job> jobs) {
  std::thread([work, subject, jobs = std::move(jobs)] {
    const auto tree =
        std::make_shared<Tree>(subject != nullptr && subject->pid > 0 ? look_at_tree(subject->pid) : Tree{});
    std::set<int> lanes;
    for (const auto& job : jobs) lanes.insert(job.source->lane);
    for (const int lane : lanes) {
      std::thread([work, subject, jobs, tree, lane] {
        for (const auto& job : jobs) {
          if (job.source->lane == lane) work->board.put(job.index, run(*job.source, *work, subject, *tree));
        }
      }).detach();
    }
  }).detach();
}

std::vector<Job> enlist(Board& board, Source::Of of, const std::string& subject) {
  std::vector<Job> jobs;
  for (const auto* source : sources(of)) {
    jobs.push_back({source, board.results.size()});
    board.results.push_back({subject, std::string(source->name), false, {}});
    ++board.open;
  }
  return jobs;
}

/// The values of the secrets, from the processes themselves: so they are not written anywhere on the way.
Masker masker_of(const Spec& spec) {
  Masker masker;
  for (const auto& subject : spec.processes) {
    const auto environment =
        subject.pid > 0 ? sys::initial_environment(subject.pid) : std::vector<std::string>{};
    for (const auto& name : spec.secrets) masker.add(std::string(sys::env_value(environment, name)));
  }
  return masker;
}

Json to_json(const Missing& missing) {
  return {{"what", missing.what}, {"why", missing.why}, {"install", missing.install}};
}

void add(Json& to, const Board::Result& result) {
  for (const auto& file : result.found.got) to["got"].push_back(file);
  for (const auto& missing : result.found.missing) to["missing"].push_back(to_json(missing));
  if (!result.done) to["missing"].push_back(to_json({result.source, "it did not answer in time", ""}));
}

Json empty_result() {
  return {{"got", Json::array()}, {"missing", Json::array()}};
}

Result<void> make_folders(const Spec& spec) {
  const auto host = std::filesystem::path(spec.folder) / spec.host;
  auto made = sys::make_private_folder(host);
  for (const auto& subject : spec.processes) {
    if (made) made = sys::make_private_folder(host / subject.name);
  }
  return made;
}

}  // namespace

Result<Json> collect(const Spec& spec) {
  const auto began = Clock::now();
  if (const auto made = make_folders(spec); !made) return std::unexpected(made.error());
  const auto work = std::make_shared<Work>(spec, masker_of(spec), began + spec.deadline);
  auto& board = work->board;
  std::vector<std::vector<Job>> jobs{enlist(board, Source::Of::host, "")};
  for (const auto& subject : work->spec.processes)
    jobs.push_back(enlist(board, Source::Of::process, subject.name));
  start(work, nullptr, jobs[0]);
  for (std::size_t i = 0; i < work->spec.processes.size(); ++i)
    start(work, &work->spec.processes[i], jobs[i + 1]);

  std::unique_lock lock(board.mutex);
  board.changed.wait_until(lock, work->end, [&] { return board.open == 0; });
  Json result{{"host", spec.host},
              {"folder", (std::filesystem::path(spec.folder) / spec.host).string()},
              {"seconds", std::chrono::duration<double>(Clock::now() - began).count()},
              {"addresses", Json::array()}};
  for (const auto& address : sys::ipv4_addresses()) result["addresses"].push_back(address.address);
  if (!spec.ending.empty()) result["ending"] = spec.ending;
  result.update(empty_result());
  result["processes"] = Json::object();
  for (const auto& one : board.results) {
    if (one.subject.empty()) {
      add(result, one);
      continue;
    }
    auto& processes = result["processes"];
    if (!processes.contains(one.subject)) processes[one.subject] = empty_result();
    add(processes[one.subject], one);
  }
  lock.unlock();
  const auto file = std::filesystem::path(spec.folder) / spec.host / "collected.json";
  if (const auto written = sys::write_file_atomically(file, json_text(result, 1) + "\n"); !written)
    return std::unexpected(written.error());
  return result;
}

}  // namespace nlaunch::evidence
