#include "report/diagnose_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "diagnose/analysis.h"
#include "diagnose/literals.h"
#include "diagnose/signature.h"

namespace nlaunch::report {
namespace {

using diagnose::Diagnosis;
using diagnose::Finding;
using diagnose::Role;

constexpr std::size_t kWholeLine = 240;  // characters
constexpr std::size_t kPartOfLine = 120;
constexpr const char* kNotHere = "not in this log";

std::string where(const Diagnosis& diagnosis, const Finding& finding) {
  const auto& file = diagnosis.file_of(finding);
  return text::printable(finding.position.line == 0 ? file
                                                    : fmt::format("{}:{}", file, finding.position.line));
}

std::string culprit(const Finding& finding) {
  const auto names = diagnose::names_of(finding.culprits);
  return names.empty() ? kNotHere : text::printable(names);
}

/// A line that is safe for a terminal, with at most `width` characters.
std::string shown(std::string_view line, std::size_t width) {
  const auto whole = text::printable(text::trim(line));
  const auto characters = text::characters(whole);
  if (characters.size() <= width) return whole;
  return whole.substr(0, static_cast<std::size_t>(characters[width].data() - whole.data())) + "...";
}

std::string head(const Diagnosis& diagnosis, const Finding& finding, const Paint& paint) {
  const auto name = fmt::format("{}:", name_of(finding.severity));
  return fmt::format("{}: {} {} [{}]\n", paint.bold(where(diagnosis, finding)),
                     finding.severity == Severity::error ? paint.red(name) : paint.yellow(name),
                     text::printable(finding.why), paint.bold(finding.category));
}

std::string cause_text(const Diagnosis& diagnosis, const Finding& finding, const Paint& paint) {
  auto out = head(diagnosis, finding, paint);
  if (finding.position.line > 0)
    out += fmt::format("  {} | {}\n", finding.position.line, shown(finding.text, kWholeLine));
  const auto line = [&](std::string_view label, const std::string& value) {
    if (!value.empty()) out += fmt::format("{} {}\n", paint.dim(label), value);
  };
  line("culprit:", culprit(finding));
  line("fix:", text::printable(finding.fix));
  line("confidence:", fmt::format("{}{}{}", name_of(finding.confidence),
                                  finding.count > 1 ? fmt::format(", {} matching lines", finding.count) : "",
                                  finding.source.empty() ? "" : fmt::format(" ({})", finding.source)));
  return out;
}

/// One line of a list.
std::string row_text(const Diagnosis& diagnosis, const Finding& finding, const Paint& paint) {
  const auto names = diagnose::names_of(finding.culprits);
  return fmt::format("  {}: {} {}{}\n", where(diagnosis, finding), paint.bold(finding.category),
                     shown(finding.text, kPartOfLine),
                     names.empty() ? "" : fmt::format(" [{}]", text::printable(names)));
}

std::string list_text(const Diagnosis& diagnosis, std::string_view title,
                      const std::vector<const Finding*>& list, const Paint& paint, bool all) {
  if (list.empty()) return "";
  constexpr std::size_t kMost = 5;
  auto out = fmt::format("{}\n", title);
  const auto count = all ? list.size() : std::min(kMost, list.size());
  for (std::size_t i = 0; i < count; ++i) out += row_text(diagnosis, *list[i], paint);
  if (count < list.size())
    out += fmt::format("  and {} more; show them with nlaunch diagnose --all\n", list.size() - count);
  return out;
}

std::string read_text(const Diagnosis& diagnosis) {
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;
  for (const auto& input : diagnosis.inputs) {
    bytes += input.bytes;
    lines += input.lines;
  }
  auto out = fmt::format("read: {}, {}, {} bytes; {} checked, {} run\n",
                         text::count(diagnosis.inputs.size(), "file"), text::count(lines, "line"), bytes,
                         text::count(diagnose::signatures().size(), "signature"),
                         fmt::format("{} analyses", diagnose::analyses().size()));
  for (const auto& input : diagnosis.inputs) {
    if (!input.remark.empty())
      out += fmt::format("  {}: {}\n", text::printable(input.name), text::printable(input.remark));
  }
  return out;
}

nlohmann::ordered_json who_json(const diagnose::Origin& who) {
  auto out = nlohmann::ordered_json::object();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  add("process", who.process);
  add("rank", who.rank);
  add("local_rank", who.local_rank);
  add("task", who.task);
  add("host", who.host);
  add("pid", who.pid);
  add("device", who.device);
  add("actor", who.actor);
  add("peer", who.peer);
  return out;
}

nlohmann::ordered_json finding_json(const Diagnosis& diagnosis, const Finding& finding) {
  nlohmann::ordered_json one{
      {"class", finding.category}, {"severity", name_of(finding.severity)}, {"role", name_of(finding.role)}};
  one["file"] = diagnosis.file_of(finding);
  one["line"] = finding.position.line;
  one["text"] = finding.text;
  const auto names = diagnose::names_of(finding.culprits);
  one["culprit"] = names.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(names);
  one["culprits"] = nlohmann::ordered_json::array();
  for (const auto& who : finding.culprits) one["culprits"].push_back(who_json(who));
  one["why"] = finding.why;
  one["fix"] = finding.fix;
  one["confidence"] = name_of(finding.confidence);
  one["lines"] = finding.count;
  one["signature"] = finding.signature;
  one["source"] = finding.source;
  return one;
}

}  // namespace

std::string diagnose_text(const Diagnosis& diagnosis, const Paint& paint, bool all) {
  std::vector<const Finding*> consequences;
  std::vector<const Finding*> others;
  std::vector<const Finding*> notes;
  for (const auto& finding : diagnosis.findings) {
    if (finding.role == Role::consequence) consequences.push_back(&finding);
    if (finding.role == Role::other) others.push_back(&finding);
  }
  for (const auto& note : diagnosis.notes) notes.push_back(&note);
  std::string out = diagnosis.findings.empty() ? paint.green("no problems found") + "\n"
                                               : cause_text(diagnosis, diagnosis.findings.front(), paint);
  out += list_text(diagnosis, "what followed:", consequences, paint, all);
  out += list_text(diagnosis, "also seen:", others, paint, all);
  if (all) {
    out += list_text(diagnosis, "notes:", notes, paint, all);
  } else if (!notes.empty()) {
    out += fmt::format("{}; show them with nlaunch diagnose --all\n", text::count(notes.size(), "note"));
  }
  return out + read_text(diagnosis);
}

std::string diagnose_brief(const Diagnosis& diagnosis, const Paint& paint) {
  return diagnosis.findings.empty() ? "" : cause_text(diagnosis, diagnosis.findings.front(), paint);
}

std::string signatures_text(const Paint& paint) {
  Table table({"signature", "class", "kind", "meaning"});
  for (const auto& one : diagnose::signatures())
    table.add({paint.bold(one.id), one.category, std::string(name_of(one.kind)), one.why});
  return table.str(paint);
}

nlohmann::ordered_json signatures_json() {
  auto out = nlohmann::ordered_json::array();
  for (const auto& one : diagnose::signatures()) {
    out.push_back({{"id", one.id},
                   {"class", one.category},
                   {"kind", name_of(one.kind)},
                   {"weight", one.weight},
                   {"pattern", one.pattern},
                   {"literals", diagnose::required_literals(one.pattern)},
                   {"why", one.why},
                   {"fix", one.fix},
                   {"source", one.source}});
  }
  return out;
}

nlohmann::ordered_json diagnose_json(const Diagnosis& diagnosis) {
  auto out = stamped<nlohmann::ordered_json>(formats::kDiagnosis);
  out["findings"] = nlohmann::ordered_json::array();
  for (const auto& finding : diagnosis.findings) out["findings"].push_back(finding_json(diagnosis, finding));
  out["notes"] = nlohmann::ordered_json::array();
  for (const auto& note : diagnosis.notes) out["notes"].push_back(finding_json(diagnosis, note));
  auto files = nlohmann::ordered_json::array();
  for (const auto& input : diagnosis.inputs) {
    nlohmann::ordered_json one{{"file", input.name}, {"bytes", input.bytes}, {"lines", input.lines}};
    if (!input.remark.empty()) one["remark"] = input.remark;
    files.push_back(std::move(one));
  }
  out["read"]["files"] = std::move(files);
  out["read"]["signatures"] = diagnose::signatures().size();
  auto names = nlohmann::ordered_json::array();
  for (const auto* entry : diagnose::analyses()) names.push_back(entry->name);
  out["read"]["analyses"] = std::move(names);
  return out;
}

}  // namespace nlaunch::report
