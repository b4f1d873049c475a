#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lint/script_text.h"

namespace nlaunch::lint {

/// The files of a recorded script, and where something is in them.
class ScriptSources {
 public:
  /// `path`: the path of the main script. `folder`: where it was recorded; may be empty.
  ScriptSources(const std::shared_ptr<const SourceFile>& main, const std::string& path, std::string folder);

  [[nodiscard]] const std::string& path() const { return path_; }  ///< of the main script, absolute
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const SourceLines& main() const { return sources_.at(path_); }
  [[nodiscard]] const std::map<std::string, SourceLines>& all() const { return sources_; }  ///< by path

  /// A script by the path that bash reports; without lines if it is not on this machine.
  const SourceLines& of(const std::string& script);
  /// The line on which a command starts: bash reports `srun \` with options below it on the line of the first
  /// option.
  std::uint32_t begin_of_command(const std::string& script, std::uint32_t line);
  /// Where a variable is in a command; the whole command if it is not there.
  SourceSpan place_of(std::string_view name, const std::string& script, std::uint32_t line,
                      std::uint32_t line_of_text = 0);
  /// Where the main script sets a variable without a trace from bash (set +x); else `otherwise`, as for `env
  /// $VARIABLES program`.
  [[nodiscard]] SourceSpan place_in_main(const std::string& name, const SourceSpan& otherwise) const;
  /// The command of a script (empty: the main one) that contains a text, else the one of the main script.
  SourceSpan place_of_text(const std::string& text, const std::string& script, std::uint32_t line);

 private:
  std::string path_;
  std::string folder_;
  std::map<std::string, SourceLines> sources_;
};

}  // namespace nlaunch::lint
