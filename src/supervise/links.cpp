#include "supervise/links.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstring>

#include "base/secrets.h"
#include "base/text.h"

namespace nlaunch::supervise {
namespace {

constexpr std::size_t kLongestUrl = 2048;
constexpr std::size_t kLongestLineWithUrl = 8192;

/// RFC 3986, appendix A.
constexpr const char* kUrlCharacters = R"([A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+)";

/// "~" stands for characters of a URL. After them comes the end of the line, a blank, or a mark that a URL
/// cannot contain.
re2::RE2 url_pattern(std::string_view pattern) {
  std::string regex;
  for (const char c : pattern) {
    if (c == '~')
      regex += kUrlCharacters;
    else
      regex += c;
  }
  return re2::RE2(regex + R"re((?:[\s"'<>]|$))re", re2::RE2::Latin1);
}

/// The form in which a tracker prints the address of a page: the group of its pattern.
struct LinkForm {
  const char* kind;
  re2::RE2 pattern;
};

/// With the version in which each form was seen.
const auto& link_forms() {
  static const LinkForm all[] = {
      // wandb/sdk/wandb_run.py: "View run at URL" (0.12.7), "View run NAME at: URL" (0.28.3)
      {"wandb", url_pattern(R"(wandb: .*View run (?:.* )?at:? +(https?://~/runs/~))")},
      // swanlab/data/callbacker/cloud.py (0.6.0), swanlab/sdk/internal/run/greeting.py (0.10.3)
      {"swanlab", url_pattern(R"(swanlab: .*View run (?:.* )?at +(https?://~/runs/~))")},
      // mlflow/tracking/_tracking_service/client.py, _log_url (3.17.2)
      {"mlflow", url_pattern(R"(View run .*at: (https?://~/experiments/~/runs/~))")},
      // tensorboard/program.py, print_serving_message (2.22.0)
      {"tensorboard", url_pattern(R"(TensorBoard \d+\.\S+ at (https?://~))")},
      // comet_ml/logging_messages.py, EXPERIMENT_LIVE (3.58.8); before: comet.ml
      {"comet", url_pattern(R"(Experiment is live on comet\.(?:com|ml) (https?://~))")},
      // neptune/metadata_containers/metadata_container.py, _startup (1.14.0)
      {"neptune", url_pattern(R"(Neptune initialized\. Open in the app: (https?://~))")},
      // trackio/deploy.py, create_space_if_not_exists, and trackio/__init__.py, show (0.36.0 to 0.43.0)
      {"trackio",
       url_pattern(R"(\* (?:Found existing|Creating new) space: (https://huggingface\.co/spaces/~))")},
      {"trackio", url_pattern(R"(\* Trackio UI launched at: (https?://~))")},
      // SwanLab prints with rich, which breaks a line before a URL that does not fit into 80 columns, and a
      // URL that is longer than that.
      {"swanlab", url_pattern(R"(^(https?://~/@~/~/runs/~) *$)")},
  };
  return all;
}

bool may_be_broken(const LinkForm& form, std::string_view line) {
  constexpr std::size_t kColumns = 80;
  return form.pattern.pattern().starts_with('^') && line.size() >= kColumns;
}

bool is_secret_parameter(std::string_view name) {
  const auto plain = text::lower(name);
  return looks_like_secret(name) || plain.find("token") != std::string::npos || plain == "key" ||
         plain == "auth" || plain == "sig" || plain == "signature";
}

/// `separator`: before it. A fragment and a part of a path can be a name on its own: "#token".
bool is_secret(std::string_view parameter, char separator) {
  const auto equals = parameter.find('=');
  if (equals == std::string_view::npos && (separator == '#' || separator == ';')) return false;
  return is_secret_parameter(parameter.substr(0, equals));
}

/// Characters that end a sentence or a quotation around a URL.
std::string_view without_punctuation(std::string_view url) {
  const auto last = url.find_last_not_of(".,;:!')]");
  return url.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

bool is_link_url(const std::string& url) {
  static const re2::RE2 kUrl(fmt::format("https?://{}", kUrlCharacters), re2::RE2::Latin1);
  return url.size() <= kLongestUrl && re2::RE2::FullMatch(url, kUrl) && without_credentials(url) == url;
}

}  // namespace

std::string Link::str() const {
  return fmt::format("{}: {}{}", kind, url, process.empty() ? "" : fmt::format(" ({})", process));
}

bool may_have_link(std::string_view text) {
  constexpr std::string_view kHttp = "http";
  return ::memmem(text.data(), text.size(), kHttp.data(), kHttp.size()) != nullptr;
}

std::optional<Link> link_in(std::string_view line) {
  if (!may_have_link(line) || line.size() > kLongestLineWithUrl) return std::nullopt;
  const auto plain = text::without_escapes(line);
  for (const auto& form : link_forms()) {
    std::string url;
    if (!re2::RE2::PartialMatch(plain, form.pattern, &url) || may_be_broken(form, plain)) continue;
    url = without_credentials(without_punctuation(url));
    if (url.size() > kLongestUrl) return std::nullopt;
    return Link{form.kind, std::move(url)};
  }
  return std::nullopt;
}

std::string without_credentials(std::string_view url) {
  constexpr std::string_view kAfterScheme = "://";
  const auto scheme = url.find(kAfterScheme);
  const auto begin = scheme == std::string_view::npos ? 0 : scheme + kAfterScheme.size();
  const auto end = std::min(url.find_first_of("/?#", begin), url.size());
  auto authority = url.substr(begin, end - begin);
  if (const auto user = authority.rfind('@'); user != std::string_view::npos)
    authority.remove_prefix(user + 1);
  std::string out = fmt::format("{}{}", url.substr(0, begin), authority);
  auto rest = url.substr(end);
  // Parameters can be in the path and in the fragment as well: ";token=x", "#token=x", "#/runs/1?token=x".
  constexpr std::string_view kSeparators = "?&;#";
  const auto path = std::min(rest.find_first_of(kSeparators), rest.size());
  out += rest.substr(0, path);
  rest.remove_prefix(path);
  char first = 0;  // the separator of the next parameter, if those before it are left out
  while (!rest.empty()) {
    const char separator = rest.front();
    const auto parameter = rest.substr(1, rest.find_first_of(kSeparators, 1) - 1);
    rest.remove_prefix(1 + parameter.size());
    if (separator == '?' || separator == '#') first = separator;
    if (is_secret(parameter, separator)) continue;
    out += first != 0 ? first : separator;
    out += parameter;
    first = 0;
  }
  return out;
}

bool add_link(std::vector<Link>& links, Link link) {
  constexpr std::size_t kLongestKind = 20;
  const bool is_kind = !link.kind.empty() && link.kind.size() <= kLongestKind &&
                       std::ranges::all_of(link.kind, [](char c) { return c >= 'a' && c <= 'z'; });
  const bool known = std::ranges::find(links, link.url, &Link::url) != links.end();
  if (!is_kind || known || links.size() >= kMostLinks || !is_link_url(link.url)) return false;
  link.process = text::printable(link.process);
  links.push_back(std::move(link));
  return true;
}

}  // namespace nlaunch::supervise
