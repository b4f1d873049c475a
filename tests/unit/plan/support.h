#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/experiment.h"
#include "config/site.h"
#include "plan/build.h"

namespace nlaunch::plan {

/// Builds plans from files that it writes to a folder of its own.
class PlanFiles : public testing::Test {
 protected:
  PlanFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "nlaunch-plan-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~PlanFiles() override { std::filesystem::remove_all(folder_); }

  Result<config::Site> site_of(const std::string& text) {
    write("site.yaml", "version: 1\nname: site\n" + text);
    return config::load_site((folder_ / "site.yaml").string(), {}, {});
  }
  Result<config::Experiment> experiment_of(const std::string& text,
                                           const std::vector<std::string>& with = {}) {
    write("experiment.yaml", "version: 1\nname: test\n" + text);
    return config::load_experiment((folder_ / "experiment.yaml").string(), {}, with);
  }

  Result<Plan> build_from(const std::string& experiment, const std::string& site, PlanOptions options = {}) {
    const auto read_site = site_of(site);
    if (!read_site) return std::unexpected(read_site.error());
    const auto read = experiment_of(experiment, options.with);
    if (!read) return std::unexpected(read.error());
    return build(*read, *read_site, facts_, options);
  }

  /// The one that can be made.
  Plan plan_of(const std::string& experiment, const std::string& site, PlanOptions options = {}) {
    auto plan = build_from(experiment, site, std::move(options));
    EXPECT_TRUE(plan) << (plan ? "" : render(plan.error()));
    return plan.value_or(Plan{});
  }

  /// The messages of a plan that must not be.
  std::string refusal(const Result<Plan>& plan) {
    EXPECT_FALSE(plan.has_value());
    return plan ? std::string() : said(plan.error());
  }

  /// The messages without this folder's name.
  std::string said(const Diagnostics& diagnostics) { return without_folder(render(diagnostics)); }
  std::string without_folder(std::string text) {
    const auto folder = folder_.string() + "/";
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder))
      text.replace(at, folder.size(), "");
    return text;
  }

  /// "5:3 message -> hint", or "message" where there is no place and no hint: one a diagnostic.
  static std::vector<std::string> listed(const Diagnostics& diagnostics) {
    std::vector<std::string> out;
    for (const auto& item : diagnostics.items()) {
      auto& text = out.emplace_back();
      if (item.span) text = std::to_string(item.span.line) + ":" + std::to_string(item.span.column) + " ";
      text += item.message + (item.hint.empty() ? "" : " -> " + item.hint);
    }
    return out;
  }
  std::vector<std::string> mistakes(const std::string& experiment, const std::string& site,
                                    PlanOptions options = {}) {
    const auto plan = build_from(experiment, site, std::move(options));
    return plan ? std::vector<std::string>{} : listed(plan.error());
  }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name) << content;
  }

  std::filesystem::path folder_;
  MachineFacts facts_{"x86_64", {}, {{"HOME", "/home/user"}, {"MODEL", "small"}}};
};

}  // namespace nlaunch::plan
