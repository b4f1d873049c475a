#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "fleet/leader.h"
#include "sys/command.h"
#include "sys/files.h"

// Nodes of elastic pools: each is a separate job, whose agent connects when the job has started and leaves
// when the scheduler takes the node back. Then another job is submitted.
namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;

/// The scheduler also serves others.
constexpr std::size_t kAskedAtOnce = 4;
/// Between two checks of the queue, for jobs that end before their agents connect.
constexpr Duration kBetweenQueueLooks = 30s;
/// For the scheduler to accept a job.
constexpr Duration kToTakeJob = 60s;
/// At the end of the run: for pending requests to be answered, and for jobs to be cancelled.
constexpr Duration kToGiveBack = 10s;
constexpr std::uint64_t kLargestJobs = 16U << 20U;

sys::SpawnRequest request_of(AgentLauncher::Start start) {
  sys::SpawnRequest request;
  request.argv = std::move(start.argv);
  request.env = std::move(start.env);
  return request;
}

}  // namespace

std::span<const Leader::Agent> Leader::own() const {
  return std::span(agents_).first(plan_.node.count);
}

std::span<Leader::Agent> Leader::own() {
  return std::span(agents_).first(plan_.node.count);
}

/// The name under which its failures are counted.
std::string Leader::place_of(std::uint32_t node, const std::string& host) const {
  return plan_.is_borrowed(node) ? plan_.name_of_borrowed(node) : host;
}

/// Several small jobs can be on one host.
std::string Leader::unique_name(std::uint32_t node, const std::string& host) const {
  const auto is_taken = [&](const std::string& name) {
    for (std::uint32_t other = 0; other < agents_.size(); ++other)
      if (other != node && agents_[other].host == name && agents_[other].lost.empty()) return true;
    return false;
  };
  auto name = host;
  for (int number = 2; is_taken(name); ++number) name = fmt::format("{}-{}", host, number);
  return name;
}

/// After a takeover: its agent is connected, or its job is in the queue. False: neither.
bool Leader::take_back(std::uint32_t node) {
  const auto& agent = agents_[node];
  if (agent.takes_part()) {
    loop_.post([this, node] {
      if (backend_ == nullptr || backend_->is_ending()) return;
      const auto& agent = agents_[node];
      agent.lost.empty() ? backend_->rejoin(node, agent.host) : recover(node);
    });
    return true;
  }
  if (!jobs_.contains(node) || agent.has_connected()) return false;
  joining_[node].host = plan_.name_of_borrowed(node);
  look_at_queue_later();
  return true;
}

void Leader::borrow(std::uint32_t node) {
  if (asking_.size() >= kAskedAtOnce || asking_.contains(node)) {
    if (std::ranges::find(to_ask_, node) == to_ask_.end()) to_ask_.push_back(node);
    return;
  }
  auto& lender = *launcher_->lender();
  if (!lender_is_ready_) {
    if (const auto prepared = lender.prepare(paths_); !prepared)
      return join_failed(node, prepared.error().first_message());
    lender_is_ready_ = true;
  }
  auto& ask = asking_[node] = {};
  ask.program =
      std::make_unique<sys::ExecCheck>(loop_, request_of(lender.ask(node, history_.ruled_out())),
                                       [this, node](std::optional<std::string> why) {
                                         loop_.post([this, node, why = std::move(why)] { asked(node, why); });
                                       });
  ask.timer = loop_.after(kToTakeJob, [this, node] {
    const bool wanted = asking_.extract(node).mapped().wanted;
    if (wanted && joining_.contains(node) && !agents_[node].joins)
      join_failed(node, fmt::format("the scheduler did not answer within {}", format_duration(kToTakeJob)));
    ask_next();
  });
}

void Leader::asked(std::uint32_t node, const std::optional<std::string>& why) {
  const auto found = asking_.find(node);
  if (found == asking_.end()) return;  // it timed out
  loop_.cancel(found->second.timer);
  const auto said = found->second.program->said();
  const bool wanted = found->second.wanted;
  asking_.erase(found);
  const auto job = why ? std::string() : launcher_->lender()->job_in(said);
  if (!wanted && !job.empty())
    cancel_job(job);
  else if (!job.empty())
    take_job(node, job);
  else if (wanted && joining_.contains(node) && !agents_[node].joins)
    join_failed(node, why.value_or("the scheduler returned no job id: " + text::printable(said)));
  ask_next();
}

void Leader::ask_next() {
  while (!to_ask_.empty() && asking_.size() < kAskedAtOnce && !asking_.contains(to_ask_.front())) {
    const auto next = to_ask_.front();
    to_ask_.pop_front();
    const auto joining = joining_.find(next);
    const bool waits = joining != joining_.end() && !joining->second.timer && !agents_[next].joins;
    if (waits && !jobs_.contains(next)) borrow(next);
  }
}

/// Its agent may have connected before this.
void Leader::take_job(std::uint32_t node, const std::string& job) {
  const auto& agent = agents_[node];
  const bool takes_part = agent.takes_part() && !agent.joins;
  jobs_[node] = {job, takes_part ? agent.hello.host : ""};
  save_jobs();
  if (backend_ == nullptr || backend_->is_ending()) return;
  caller_.console.say(fmt::format("nlaunch: submitted job {} for {}\n", job, plan_.name_of_borrowed(node)));
  look_at_queue_later();
}

/// For a leader that takes over the run, and for people.
void Leader::save_jobs() {
  auto jobs = nlohmann::ordered_json::object();
  for (const auto& [node, job] : jobs_)
    jobs[plan_.name_of_borrowed(node)] = {{"job", job.id}, {"on", job.host}};
  const auto kept = sys::write_file_atomically(paths_.attempt / "borrowed.json", json_text(jobs, 1) + "\n");
  if (!kept && backend_ != nullptr) tell_trouble(kept.error().first_message());
}

/// As the previous leader left them. Their agents are expected.
void Leader::load_jobs() {
  const auto text = sys::read_regular_file(paths_.attempt / "borrowed.json", kLargestJobs);
  const auto jobs = parse_ordered_json(text.value_or(""));
  if (!jobs.is_object()) return;
  for (auto node = plan_.node.count; node < agents_.size(); ++node) {
    const auto known = jobs.find(plan_.name_of_borrowed(node));
    if (known == jobs.end() || !known->is_object()) continue;
    const auto text_of = [&](const char* key) {
      return known->contains(key) && (*known)[key].is_string() ? (*known)[key].get<std::string>() : "";
    };
    const auto id = text_of("job");
    if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos) continue;
    jobs_[node] = {id, text_of("on")};
    if (!jobs_[node].host.empty()) agents_[node].lost.clear();
  }
}

void Leader::look_at_queue_later() {
  if (queue_timer_ || listing_) return;
  queue_timer_ = loop_.after(kBetweenQueueLooks, [this] {
    queue_timer_.reset();
    look_at_queue();
  });
}

void Leader::look_at_queue() {
  std::map<std::uint32_t, std::string> awaited;
  for (const auto& [node, job] : jobs_)
    if (joining_.contains(node) && !agents_[node].joins) awaited[node] = job.id;
  if (awaited.empty() || backend_ == nullptr || backend_->is_ending()) return;
  listing_ = std::make_unique<sys::ExecCheck>(
      loop_, request_of(launcher_->lender()->list()),
      [this, awaited = std::move(awaited)](const std::optional<std::string>& why) {
        loop_.post([this, awaited, failed = why.has_value()] {
          const auto lines = text::split(listing_->said(), '\n');
          listing_.reset();
          look_at_queue_later();
          for (const auto& [node, job] : awaited) {
            if (!failed && std::ranges::find(lines, job) == lines.end()) job_ended(node, job);
          }
        });
      });
}

/// The job ended before its agent connected.
void Leader::job_ended(std::uint32_t node, const std::string& job) {
  const auto found = jobs_.find(node);
  const bool is_awaited = joining_.contains(node) && !agents_[node].joins;
  if (found == jobs_.end() || found->second.id != job || !is_awaited) return;
  const auto log = launcher_->lender()->log_of(job);
  const auto said = text::trim(sys::read_regular_file(log, kLargestJobs).value_or(""));
  join_failed(node, fmt::format("job {} ended before its agent connected{}", job,
                                said.empty() ? std::string()
                                             : ": " + text::printable(said.substr(said.rfind('\n') + 1))));
}

/// Cancels what is left of the job of a lost node.
void Leader::give_back(std::uint32_t node) {
  if (const auto ask = asking_.find(node); ask != asking_.end()) ask->second.wanted = false;
  const auto job = jobs_.extract(node);
  if (job.empty()) return;
  save_jobs();
  cancel_job(job.mapped().id);
}

void Leader::cancel_job(const std::string& job) {
  giving_back_[job] =
      std::make_unique<sys::ExecCheck>(loop_, request_of(launcher_->lender()->give_back({job})),
                                       [this, job](const std::optional<std::string>&) {
                                         loop_.post([this, job] { giving_back_.erase(job); });
                                       });
}

/// At the end of the run. Connected agents end their jobs themselves.
void Leader::give_back_all() {
  if (led_by_another_ || launcher_->lender() == nullptr) return;
  to_ask_.clear();
  const auto deadline = std::chrono::steady_clock::now() + kToGiveBack;
  while ((!asking_.empty() || !giving_back_.empty()) && std::chrono::steady_clock::now() < deadline)
    run_loop_briefly();
  std::vector<std::string> jobs;
  for (const auto& [node, job] : jobs_)
    if (!agents_[node].takes_part()) jobs.push_back(job.id);
  const bool were_jobs = !jobs_.empty();
  jobs_.clear();
  if (!jobs.empty()) {
    const auto given = sys::run_command(request_of(launcher_->lender()->give_back(jobs)), kToGiveBack);
    if (!given || !given->status.ok())
      return caller_.console.say(
          fmt::format("nlaunch: these jobs could not be cancelled and will end on their own: {}\n",
                      text::join(jobs, ", ")));
  }
  if (were_jobs) save_jobs();
}

}  // namespace nlaunch::fleet
