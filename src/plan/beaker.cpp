#include "plan/beaker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

using config::Text;

constexpr Duration kStartTimeout = std::chrono::minutes(30);
constexpr Duration kLongestStart = std::chrono::hours(48);  // Beaker's own limit
constexpr const char* kProgram = "/nlaunch/bin/nlaunch";
constexpr const char* kResult = "/results";
constexpr const char* kToken = "nlaunch_token";

/// Whether one path is within the other, also on a case-insensitive file system.
bool overlap(const std::string& a, const std::string& b) {
  const auto folder = [](const std::string& path) {
    return text::lower(path) + (path.ends_with('/') ? "" : "/");
  };
  const auto left = folder(a);
  const auto right = folder(b);
  return left.starts_with(right) || right.starts_with(left);
}

class BeakerBuilder {
 public:
  BeakerBuilder(const config::Experiment& experiment, const config::Site& site,
                const std::function<std::string(const Text&)>& resolve, Diagnostics& diagnostics)
      : experiment_(experiment),
        own_(experiment.beaker),
        site_(site.beaker),
        name_(site.name.value),
        resolve_(resolve),
        diagnostics_(diagnostics) {}

  Beaker build(std::uint16_t port) {
    set_texts();
    set_times();
    beaker_.host_networking = either(&config::Beaker::host_networking).value_or(true);
    beaker_.port = static_cast<std::uint16_t>(either(&config::Beaker::port).value_or(port));
    for (const auto* from : {&site_, &own_}) {
      for (const auto& mount : from->datasets) add_mount(mount);
    }
    set_secrets();
    return std::move(beaker_);
  }

 private:
  /// The experiment's value, otherwise the site's.
  template <class T>
  const T& either(T config::Beaker::*member) const {
    const auto& own = own_.*member;
    if constexpr (requires { own.has_value(); }) {
      return own.has_value() ? own : site_.*member;
    } else {
      return own.empty() ? site_.*member : own;
    }
  }

  std::string text(std::optional<Text> config::Beaker::*member, const char* fallback = "") {
    const auto& value = either(member);
    return value ? resolve_(*value) : fallback;
  }

  std::vector<std::string> texts(std::vector<Text> config::Beaker::*member) {
    std::vector<std::string> out;
    for (const auto& value : either(member)) out.push_back(resolve_(value));
    return out;
  }

  std::string path(std::optional<Text> config::Beaker::*member, const char* key, const char* fallback) {
    auto value = text(member, fallback);
    check_absolute(value, key, either(member) ? either(member)->span : SourceSpan{});
    return value;
  }

  std::string size(std::optional<Text> config::Beaker::*member, const char* key) {
    auto value = text(member);
    if (value.empty()) return value;
    if (const auto bytes = parse_size(value); !bytes) {
      error("plan.beaker-value", either(member)->span, fmt::format("'{}': {}", key, bytes.error())).hint =
          "write 10GiB";
    }
    return value;
  }

  void set_texts() {
    beaker_.workspace = text(&config::Beaker::workspace);
    beaker_.budget = text(&config::Beaker::budget);
    beaker_.description = text(&config::Beaker::description);
    beaker_.image = text(&config::Beaker::image);
    if (beaker_.image.empty()) {
      error("plan.beaker-image", {}, fmt::format("site '{}' runs containers, but no image is set", name_))
          .hint =
          "write `beaker: {image: USER/IMAGE}` (or docker://TAG) in the experiment, or --set "
          "beaker.image=...";
    }
    beaker_.cluster = texts(&config::Beaker::cluster);
    beaker_.hostname = texts(&config::Beaker::hostname);
    beaker_.token = text(&config::Beaker::token, kToken);
    beaker_.program = path(&config::Beaker::nlaunch, "nlaunch", kProgram);
    beaker_.result = path(&config::Beaker::result, "result", kResult);
    beaker_.memory = size(&config::Beaker::memory, "memory");
    beaker_.shared_memory = size(&config::Beaker::shared_memory, "shared_memory");
  }

  void set_times() {
    if (const auto& priority = either(&config::Beaker::priority)) beaker_.priority = name_of(*priority);
    beaker_.min_runtime = either(&config::Beaker::min_runtime);
    beaker_.timeout = either(&config::Beaker::timeout);
    if (const auto& resume = either(&config::Beaker::auto_resume)) beaker_.auto_resume = resume->value;
    if (const auto& preemptible = either(&config::Beaker::preemptible)) {
      beaker_.preemptible = preemptible->value;
      if (beaker_.min_runtime || beaker_.auto_resume) {
        error("plan.beaker-value", preemptible->span,
              "Beaker does not accept 'preemptible' together with 'min_runtime' or 'auto_resume'")
            .hint = "remove 'preemptible': the other two replace it";
      }
    }
    const auto& start = either(&config::Beaker::start_timeout);
    beaker_.start_timeout = start ? start->value : kStartTimeout;
    if (beaker_.start_timeout > Duration(0) && beaker_.start_timeout <= kLongestStart) return;
    error("plan.beaker-value", start->span,
          fmt::format("'start_timeout' must be more than 0s and at most {}, found {}",
                      format_duration(kLongestStart), format_duration(beaker_.start_timeout)));
  }

  void add_mount(const config::BeakerMount& from) {
    BeakerMount mount{resolve_(from.path), from.kind.value, resolve_(from.source),
                      from.sub_path ? resolve_(*from.sub_path) : ""};
    while (mount.path.size() > 1 && mount.path.ends_with('/')) mount.path.pop_back();
    std::erase_if(beaker_.datasets, [&](const BeakerMount& other) { return other.path == mount.path; });
    if (mount.kind.empty()) return;
    if (!check_absolute(mount.path, "datasets", from.path.span)) return;
    for (const auto& other : beaker_.datasets) {
      if (!overlap(mount.path, other.path)) continue;
      error("plan.beaker-mount", from.path.span,
            fmt::format("the mounts '{}' and '{}' overlap", mount.path, other.path));
    }
    if (overlap(mount.path, beaker_.result)) {
      error("plan.beaker-mount", from.path.span,
            fmt::format("the mount '{}' overlaps with 'result', which is '{}'", mount.path, beaker_.result));
    }
    beaker_.datasets.push_back(std::move(mount));
  }

  /// Each secret of the plan comes from a Beaker secret, by default the one with the same name.
  void set_secrets() {
    for (const auto& secret : experiment_.secrets)
      beaker_.secrets.push_back({secret.name.value, secret.name.value});
    for (const auto* from : {&site_, &own_}) {
      for (const auto& [name, secret] : from->secrets) {
        const auto known = std::ranges::find(beaker_.secrets, name.value, &BeakerSecret::name);
        if (known != beaker_.secrets.end()) {
          known->secret = resolve_(secret);
        } else if (from == &own_) {
          error("plan.beaker-secret", name.span, fmt::format("the experiment has no secret '{}'", name.value))
              .hint = fmt::format("declare it: `secrets: {{{}: env}}`", name.value);
        }
      }
    }
  }

  bool check_absolute(const std::string& value, const char* key, const SourceSpan& span) {
    if (value.starts_with('/')) return true;
    error("plan.beaker-value", span,
          fmt::format("'{}' of '{}' must be a path in the container that starts with /", value, key));
    return false;
  }

  Diagnostic& error(const char* id, const SourceSpan& span, std::string message) {
    return diagnostics_.error(id, span, std::move(message));
  }

  const config::Experiment& experiment_;
  const config::Beaker& own_;
  const config::Beaker& site_;
  const std::string& name_;
  const std::function<std::string(const Text&)>& resolve_;
  Diagnostics& diagnostics_;
  Beaker beaker_;
};

}  // namespace

Beaker make_beaker(const config::Experiment& experiment, const config::Site& site, std::uint16_t port,
                   const std::function<std::string(const Text&)>& resolve, Diagnostics& diagnostics) {
  auto beaker = BeakerBuilder(experiment, site, resolve, diagnostics).build(port);
  for (const auto& program : site.submit) beaker.submit.push_back(resolve(program));
  if (beaker.submit.empty()) beaker.submit.emplace_back("beaker");
  return beaker;
}

}  // namespace nlaunch::plan
