#include "report/exposition.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::report {
namespace {

/// Escapes backslashes and quotes in the value of a label, and makes control characters visible.
std::string label_text(std::string_view value) {
  std::string out;
  for (const char c : text::printable(value)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

constexpr std::string_view kOpenMetrics = "application/openmetrics-text";

}  // namespace

void Exposition::gauge(std::string_view name, std::string_view help) {
  name_ = name;
  out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
}

void Exposition::counter(std::string_view name, std::string_view help) {
  name_ = fmt::format("{}_total", name);
  // In OpenMetrics the suffix belongs to the sample, and not to the metric.
  out_ += fmt::format("# HELP {0} {1}\n# TYPE {0} counter\n",
                      format_ == Format::openmetrics ? name : std::string_view(name_), help);
}

void Exposition::sample(double value, const Labels& labels) {
  std::vector<std::string> parts;
  for (const auto& [name, text] : labels) parts.push_back(fmt::format("{}=\"{}\"", name, label_text(text)));
  const auto inner = parts.empty() ? std::string() : fmt::format("{{{}}}", text::join(parts, ","));
  out_ += fmt::format("{}{} {}\n", name_, inner, value);
}

std::string Exposition::take() {
  if (format_ == Format::openmetrics) out_ += "# EOF\n";
  return std::move(out_);
}

std::string_view content_type(Exposition::Format format) {
  return format == Exposition::Format::openmetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

Exposition::Format format_for(std::string_view accept) {
  return accept.contains(kOpenMetrics) ? Exposition::Format::openmetrics : Exposition::Format::prometheus;
}

}  // namespace nlaunch::report
