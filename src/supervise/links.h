#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The pages on which experiment trackers show a run. The trackers print their addresses.
namespace nlaunch::supervise {

struct Link {
  std::string kind;       ///< "wandb", "tensorboard", "mlflow", "comet", "neptune", "swanlab", "trackio"
  std::string url;        ///< http or https; ASCII without blanks; without credentials; at most 2 KiB
  std::string process{};  ///< "learner.0": whose output named it

  /// "wandb: https://wandb.ai/... (learner.0)"
  [[nodiscard]] std::string str() const;
  bool operator==(const Link&) const = default;
};

/// A run has at most so many.
inline constexpr std::size_t kMostLinks = 16;

/// False if link_in() finds nothing in any line of this text; faster than that.
bool may_have_link(std::string_view text);

/// The page that a line of output names. Cheap for a line without "http".
std::optional<Link> link_in(std::string_view line);

/// The URL without a user, a password, and parameters whose names look like secrets (`apiKey`,
/// `write_token`).
std::string without_credentials(std::string_view url);

/// Adds a link that may come from a file that somebody has changed. False, and nothing is added, if its URL
/// is known, if it is not one that `link_in` could have returned, or if there are kMostLinks.
bool add_link(std::vector<Link>& links, Link link);

}  // namespace nlaunch::supervise
