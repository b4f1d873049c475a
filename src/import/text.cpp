#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "emit/yaml.h"
#include "import/import.h"

namespace nlaunch::import {
namespace {

constexpr std::size_t kWidth = 120;

/// A YAML scalar, without quotes if it is unambiguous.
std::string scalar(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=+@%-";
  constexpr std::array<std::string_view, 12> kWords{"true", "false", "yes", "no",   "on",   "off",
                                                    "null", "y",     "n",   ".nan", ".inf", "-.inf"};
  const auto first = text.empty() ? '"' : text[0];
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto second = text.size() > 1 ? text[1] : '"';
  const bool letter =
      is_letter(first) || first == '/' || (first == '.' && (is_letter(second) || second == '/'));
  const bool option =
      first == '-' && (is_letter(second) || (second == '-' && text.size() > 2 && is_letter(text[2])));
  const bool plain = (letter || option || text == ".") &&
                     text.find_first_not_of(kPlain) == std::string_view::npos &&
                     std::ranges::find(kWords, text::lower(text)) == kWords.end();
  return plain ? std::string(text) : emit::yaml_quote(text);
}

std::string list_of(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const auto& text : texts) all.push_back(scalar(text));
  return fmt::format("[{}]", text::join(all, ", "));
}

std::string at_line(std::uint32_t line) {
  return line == 0 ? "" : fmt::format("line {}", line);
}

/// "  # line 12; remark"
std::string behind(std::uint32_t line, const std::string& remark) {
  if (line == 0 && remark.empty()) return {};
  if (line > 0 && remark.starts_with('#')) return fmt::format("  # {}  {}", at_line(line), remark);
  const auto both = line > 0 && !remark.empty() ? "; " : "";
  return fmt::format("  # {}{}{}", at_line(line), both, text::printable(remark));
}

/// Lines of a file.
class ExperimentLines {
 public:
  void line(std::size_t indent, std::string_view text) {
    out_ += std::string(indent, ' ') + std::string(text) + "\n";
  }

  void remarks(std::size_t indent, const std::vector<Remark>& all) {
    for (const auto& one : all)
      line(indent, fmt::format("# {}{}{}", at_line(one.line), one.line > 0 ? ": " : "", one.text));
  }
  void remarks(std::size_t indent, const Imported& all, Destination destination) {
    const auto found = all.remarks.find(destination);
    if (found != all.remarks.end()) remarks(indent, found->second);
  }

  void entry(std::size_t indent, const ImportedEntry& one) {
    line(indent, fmt::format("{}: {}{}", one.name, scalar(one.value), behind(one.line, one.remark)));
  }

  /// A list, on one line or as many as needed.
  void list(std::size_t indent, std::string_view key, const std::vector<std::string>& texts,
            std::string_view after = "") {
    const auto whole = fmt::format("{}: {}{}", key, list_of(texts), after);
    if (indent + whole.size() <= kWidth) return line(indent, whole);
    std::string row = fmt::format("{}: [", key);
    bool first = true;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto one = fmt::format("{}{}", scalar(texts[i]), i + 1 < texts.size() ? "," : "]");
      if (!first && indent + row.size() + one.size() + 1 > kWidth) {
        line(indent, row);
        row = "  ";
        first = true;
      }
      if (!first) row += ' ';
      row += one;
      first = false;
    }
    line(indent, row + std::string(after));
  }

  void environment(std::size_t indent, const ImportedEnvironment& env, bool long_form) {
    std::vector<std::string> unset;
    for (const auto& one : env.unset) unset.push_back(one.name);
    const bool plain = !long_form && unset.empty() && env.prepend.empty() && env.append.empty();
    if (plain && env.set.empty()) return;
    if (plain && indent > 0 && short_environment(indent, env.set)) return;
    line(indent, "env:");
    if (!unset.empty())
      line(indent + 2, fmt::format("unset: {}{}", list_of(unset), behind(env.unset.front().line, "")));
    for (const auto& [key, list] :
         {std::pair{"set", &env.set}, {"prepend", &env.prepend}, {"append", &env.append}}) {
      if (list->empty()) continue;
      if (!plain) line(indent + 2, fmt::format("{}:", key));
      for (const auto& one : *list) entry(indent + (plain ? 2 : 4), one);
    }
  }

  /// Writes a role's environment on one line if it is short enough; returns whether it was.
  bool short_environment(std::size_t indent, const std::vector<ImportedEntry>& entries) {
    std::vector<std::string> all;
    std::vector<std::string> lines;
    for (const auto& one : entries) {
      if (entries.size() > 1 && !one.remark.empty()) return false;
      all.push_back(fmt::format("{}: {}", one.name, scalar(one.value)));
      if (one.line > 0) lines.push_back(std::to_string(one.line));
    }
    const auto text = fmt::format("env: {{{}}}", text::join(all, ", "));
    if (indent + text.size() > kWidth) return false;
    if (entries.size() == 1) {
      line(indent, text + behind(entries.front().line, entries.front().remark));
    } else {
      line(indent, text + (lines.empty() ? ""
                                         : fmt::format("  # line{} {}", lines.size() > 1 ? "s" : "",
                                                       text::join(lines, ", "))));
    }
    return true;
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

std::vector<std::string> submit_of(const Imported& all) {
  std::vector<std::string> words{"sbatch"};
  words.insert(words.end(), all.submit.begin(), all.submit.end());
  return words;
}

void write_secrets(ExperimentLines& out, const Imported& all) {
  out.remarks(0, all, Destination::secrets);
  if (all.secrets.empty()) return;
  out.line(0, "secrets:");
  for (const auto& one : all.secrets) {
    const auto source = one.kind == "env" ? "env" : fmt::format("{{{}: {}}}", one.kind, scalar(one.value));
    out.line(2, fmt::format("{}: {}{}", one.name, source, behind(one.line, one.remark)));
  }
}

void write_ready(ExperimentLines& out, const ImportedReady& ready) {
  if (ready.exited) return out.line(4, "ready: exited");
  if (!ready.delay.empty()) return out.line(4, fmt::format("ready: {{delay: {}}}", ready.delay));
  const auto rest = fmt::format(", timeout: {}}}{}", ready.timeout, behind(ready.line, ""));
  if (!ready.tcp.empty()) return out.line(4, fmt::format("ready: {{tcp: {}{}", scalar(ready.tcp), rest));
  if (!ready.http.empty()) return out.line(4, fmt::format("ready: {{http: {}{}", scalar(ready.http), rest));
  if (!ready.log.empty()) return out.line(4, fmt::format("ready: {{log: {}{}", scalar(ready.log), rest));
  out.list(4, fmt::format("ready: {{timeout: {}, exec", ready.timeout), ready.exec, "}");
}

/// A helper: what follows starts after it has exited with 0.
bool is_task(const ImportedRole& role) {
  return role.kind == RoleKind::service && role.ready && role.ready->exited && !role.ends_run &&
         !role.may_end;
}

/// The keys of a role that fit on one line each.
std::vector<std::string> short_keys(const ImportedRole& role) {
  std::vector<std::string> keys{fmt::format("kind: {}", name_of(is_task(role) ? RoleKind::task : role.kind))};
  const auto add = [&](std::string_view key, const std::string& value) {
    keys.push_back(fmt::format("{}: {}", key, value));
  };
  if (!role.pools.empty()) add("pool", role.pools.size() == 1 ? role.pools[0] : list_of(role.pools));
  if (role.count > 1) add("count", std::to_string(role.count));
  if (role.per_node > 0) add("per_node", std::to_string(role.per_node));
  if (role.each_node) add("per", "node");
  if (!role.except.empty()) add("except", role.except);
  if (role.gpus > 0) add("gpus", std::to_string(role.gpus));
  if (!role.share_gpus_with.empty())
    add("share_gpus_with",
        role.share_gpus_with.size() == 1 ? role.share_gpus_with[0] : list_of(role.share_gpus_with));
  if (role.rendezvous) add("rendezvous", "torch");
  if (role.ends_run) add("ends_run", *role.ends_run ? "true" : "false");
  if (role.may_end) add("exit", "ok");
  if (!role.grace.empty()) add("stop", fmt::format("{{grace: {}}}", role.grace));
  if (!role.ports.empty()) add("ports", list_of(role.ports));
  if (!role.preload.empty()) add("preload", list_of(role.preload));
  if (!role.spawned_by.empty()) add("spawned_by", list_of(role.spawned_by));
  if (!role.classify.empty()) add("classify", scalar(role.classify));
  return keys;
}

void write_role(ExperimentLines& out, const ImportedRole& role) {
  const auto keys = short_keys(role);
  if (role.command.empty() && role.remarks.empty() && role.environment.set.empty())
    return out.line(2, fmt::format("{}: {{{}}}", role.name, text::join(keys, ", ")));
  out.line(2, fmt::format("{}:{}", role.name, behind(role.line, "")));
  out.remarks(4, role.remarks);
  for (const auto& key : keys) out.line(4, key);
  if (!role.workdir.empty()) out.line(4, "workdir: " + scalar(role.workdir));
  if (!role.venv.empty()) out.line(4, "venv: " + scalar(role.venv));
  if (!role.wrapper.empty()) out.list(4, "wrapper", role.wrapper);
  if (!role.command.empty()) out.list(4, "command", role.command);
  out.environment(4, role.environment, false);
  if (role.ready && !is_task(role)) write_ready(out, *role.ready);
}

void write_walltime(ExperimentLines& out, const Imported& all) {
  out.remarks(0, all, Destination::walltime);
  if (!all.walltime) return;
  const auto& one = *all.walltime;
  std::vector<std::string> parts;
  if (!one.signal.empty()) parts.push_back("signal: " + one.signal);
  if (!one.before.empty()) parts.push_back("before: " + one.before);
  parts.push_back(fmt::format("then: {}", name_of(one.then)));
  if (one.max > 0) parts.push_back(fmt::format("max: {}", one.max));
  out.line(0, fmt::format("walltime: {{{}}}{}", text::join(parts, ", "), behind(one.line, "")));
}

/// Values of sbatch options: flags and numbers are not quoted there.
std::string option_value(const std::string& value) {
  constexpr std::size_t kLongest = 9;
  const bool number = !value.empty() && value.size() <= kLongest &&
                      value.find_first_not_of("0123456789") == std::string::npos &&
                      (value[0] != '0' || value.size() == 1);
  return value == "true" || number ? value : scalar(value);
}

void write_entries(ExperimentLines& out, std::size_t indent, std::string_view key,
                   const std::vector<ImportedEntry>& entries) {
  if (entries.empty()) return;
  out.line(indent, fmt::format("{}:", key));
  for (const auto& one : entries) {
    out.line(indent + 2,
             fmt::format("{}: {}{}", one.name, option_value(one.value), behind(one.line, one.remark)));
  }
}

void write_pools(ExperimentLines& out, const Imported& all) {
  if (all.pools.empty()) return;
  out.line(0, "pools:");
  for (const auto& pool : all.pools) {
    if (!pool.gpus) {
      out.line(2, fmt::format("{}: {{nodes: {}}}", pool.name, pool.nodes));
      continue;
    }
    out.line(2, fmt::format("{}:", pool.name));
    out.line(4, fmt::format("nodes: {}", pool.nodes));
    out.line(4, fmt::format("gpus: {}", *pool.gpus));
    write_entries(out, 4, "slurm", pool.slurm);
  }
}

std::vector<std::string> values_of(const std::vector<ImportedEntry>& entries) {
  std::vector<std::string> values;
  for (const auto& one : entries) values.push_back(one.value);
  return values;
}

}  // namespace

std::string experiment_text(const Imported& all) {
  ExperimentLines out;
  out.line(0, fmt::format("# Generated by `nlaunch import` from {}; line numbers refer to it. Next:",
                          text::printable(all.script)));
  out.line(
      0,
      fmt::format(
          "#   nlaunch plan {0}.yaml --site ./{0}.site.yaml && nlaunch lint {0}.yaml --site ./{0}.site.yaml",
          all.name));
  out.remarks(0, all, Destination::experiment);
  out.line(0, "version: 1");
  out.line(0, fmt::format("name: {}", scalar(all.name)));
  write_pools(out, all);
  if (all.nodes > 1 && all.pools.empty()) out.line(0, fmt::format("nodes: {}", all.nodes));
  out.remarks(0, all, Destination::workdir);
  for (const auto* one : {&all.workdir, &all.venv}) {
    if (!one->value.empty()) out.entry(0, *one);
  }
  if (!all.vars.empty()) out.line(0, "vars:");
  for (const auto& one : all.vars) out.entry(2, one);
  out.remarks(0, all, Destination::environment);
  out.environment(0, all.environment, false);
  write_secrets(out, all);
  out.line(0, "roles:");
  out.remarks(2, all, Destination::roles);
  for (const auto& role : all.roles) write_role(out, role);
  if (!all.start.empty()) {
    std::vector<std::string> stages;
    for (const auto& stage : all.start) stages.push_back(list_of(stage));
    out.line(0, fmt::format("start: [{}]", text::join(stages, ", ")));
  }
  const bool any_gpu = std::ranges::any_of(all.roles, [](const auto& role) { return role.gpus > 0; });
  if (!any_gpu) out.line(0, "weight_sync: {backend: gloo}  # no GPU is requested");
  write_walltime(out, all);
  out.remarks(0, all, Destination::slurm);
  write_entries(out, 0, "slurm", all.slurm);
  return out.take();
}

std::string profile_text(const Imported& all) {
  ExperimentLines out;
  out.line(0, fmt::format("# The machine as seen by {}, generated by `nlaunch import`. A shipped "
                          "profile may describe it better:",
                          text::printable(all.script)));
  out.line(0,
           "# `nlaunch sites` lists them. To check this one: nlaunch sites check " + all.name + ".site.yaml");
  out.remarks(0, all, Destination::profile);
  out.line(0, "version: 1");
  out.line(0, fmt::format("name: {}", scalar(all.site)));
  out.line(0, all.scheduler ? "extends: common" : "extends: local");
  out.remarks(0, all, Destination::scheduler);
  if (all.scheduler) {
    out.line(0, "scheduler:");
    out.line(2, "kind: slurm");
    out.list(2, "submit", submit_of(all));
    write_entries(out, 2, "directives", all.directives);
    if (!all.srun.empty()) out.list(2, "srun", values_of(all.srun));
  }
  std::vector<std::string> node;
  if (all.gpus > 0) node.push_back(fmt::format("gpus: {}", all.gpus));
  if (!all.gpu.empty()) node.push_back(fmt::format("gpu: {}", scalar(all.gpu)));
  if (!all.nics.empty() || !all.interface.empty()) {
    std::vector<std::string> nics;
    if (!all.nics.empty()) nics.push_back("kind: " + scalar(all.nics));
    if (!all.interface.empty()) nics.push_back("interface: " + scalar(all.interface));
    node.push_back(fmt::format("nics: {{{}}}", text::join(nics, ", ")));
  }
  if (!all.scratch.empty()) node.push_back("scratch: " + scalar(all.scratch));
  out.remarks(0, all, Destination::node);
  if (!node.empty()) out.line(0, fmt::format("node: {{{}}}", text::join(node, ", ")));
  out.remarks(0, all, Destination::modules);
  if (!all.modules.empty() || all.modules_reset || !all.module_paths.empty() || !all.modules_init.empty()) {
    out.line(0, "modules:");
    if (!all.modules_init.empty()) out.line(2, "init: " + scalar(all.modules_init));
    if (all.modules_reset) out.line(2, "reset: true");
    if (!all.module_paths.empty())
      out.list(2, "use", values_of(all.module_paths), behind(all.module_paths[0].line, ""));
    if (!all.modules.empty()) out.list(2, "load", values_of(all.modules));
  }
  const auto& env = all.site_environment;
  out.remarks(0, all, Destination::site_environment);
  if (!env.set.empty() || !env.unset.empty() || !env.prepend.empty() || !env.append.empty())
    out.environment(0, env, true);
  out.remarks(0, all, Destination::libraries);
  if (!all.libraries.empty()) {
    out.line(0, "libraries:");
    for (const auto& one : all.libraries)
      out.line(2, fmt::format("{}: {{path: {}}}{}", one.name, scalar(one.path), behind(one.line, "")));
  }
  return out.take();
}

}  // namespace nlaunch::import
