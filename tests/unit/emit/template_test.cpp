#include "emit/template.h"

#include <gtest/gtest.h>

#include <array>

namespace nlaunch::emit {
namespace {

const std::array kNames{TemplateName{"TITLE", true}, TemplateName{"COMMAND", true},
                        TemplateName{"NOTE", false}};

Result<Template> parse(std::string text) {
  return Template::parse(std::make_shared<const SourceFile>(SourceFile{"job.sbatch", std::move(text)}),
                         kNames);
}

/// All that is said about a template that is wrong.
std::string complaint(std::string text) {
  const auto read = parse(std::move(text));
  return read ? "no error\n" : render(read.error());
}

TEST(Template, PutsValuesInAsTheyAre) {
  const auto read = parse("# {{TITLE}}\n{{COMMAND}} {{COMMAND}};x=${a:-${b}}\n");
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(read->fill({{"TITLE", "$(x)"}, {"COMMAND", "{{TITLE}}"}}),
            "# $(x)\n{{TITLE}} {{TITLE}};x=${a:-${b}}\n");
}

TEST(Template, SaysEveryNameThatItDoesNotKnow) {
  EXPECT_EQ(complaint("# {{TITLE}} für {{NOTES}}\n{{ COMMAND }} {{Whatever}}\n"),
            "job.sbatch:1:17: error: '{{NOTES}}' is not a name of this template [emit.unknown-name]\n"
            "   1 | # {{TITLE}} für {{NOTES}}\n"
            "     |                 ^^^^^^^^^\n"
            "hint: did you mean {{NOTE}}?\n"
            "\n"
            "job.sbatch:2:1: error: '{{ COMMAND }}' is not a name of this template [emit.unknown-name]\n"
            "   2 | {{ COMMAND }} {{Whatever}}\n"
            "     | ^^^^^^^^^^^^^\n"
            "hint: did you mean {{COMMAND}}?\n"
            "\n"
            "job.sbatch:2:15: error: '{{Whatever}}' is not a name of this template [emit.unknown-name]\n"
            "   2 | {{ COMMAND }} {{Whatever}}\n"
            "     |               ^^^^^^^^^^^^\n"
            "hint: the names are TITLE, COMMAND, NOTE\n"
            "\n"
            "3 errors\n");
}

TEST(Template, SaysWhatIsNotClosed) {
  EXPECT_EQ(complaint("{{TITLE}}\n  exec {{COMMAND}\n"),
            "job.sbatch:2:8: error: '{{' is not closed on its line [emit.unclosed-name]\n"
            "   2 |   exec {{COMMAND}\n"
            "     |        ^^\n"
            "hint: write a name as {{NAME}}; the names are TITLE, COMMAND, NOTE\n");
}

TEST(Template, SaysWhatItMustUse) {
  EXPECT_EQ(
      complaint("# {{NOTE}}\n"),
      "job.sbatch: error: the template does not use {{TITLE}}, which is required [emit.missing-name]\n"
      "\n"
      "job.sbatch: error: the template does not use {{COMMAND}}, which is required [emit.missing-name]\n"
      "\n"
      "2 errors\n");
  EXPECT_EQ(complaint(""), complaint("# {{NOTE}}\n"));
}

}  // namespace
}  // namespace nlaunch::emit
