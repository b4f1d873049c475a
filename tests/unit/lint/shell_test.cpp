#include "lint/shell/shell.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace nlaunch::lint {
namespace {

Script read(const std::string& text) {
  return read_shell(std::make_shared<const SourceFile>(SourceFile{"a.sh", text}));
}

/// One command a line: assignments, words; "?" for what is under a condition, "(" within a substitution.
std::string shown(const Script& script) {
  std::string out;
  for (const auto& command : script.commands) {
    out += std::to_string(command.span.line) + (command.sure ? ":" : "?") + (command.nested ? "(" : "");
    for (const auto& one : command.assignments)
      out += " " + one.name + (one.append ? "+=" : "=") + one.value.shown();
    for (const auto& word : command.words) out += " [" + word.shown() + "]";
    out += "\n";
  }
  for (const auto& one : script.unread) out += one.span.where() + " " + one.message + "\n";
  return out;
}

TEST(Shell, WordsAndQuotes) {
  EXPECT_EQ(shown(read("a 'b c' \"d $e\" f\\ g $'x\\ny' h\"i\"'j'\n")),
            "1: [a] [b c] [d $e] [f g] [x\ny] [hij]\n");
  EXPECT_EQ(shown(read("echo a#b # c\n# d\ne \\\n  f\n")), "1: [echo] [a#b]\n3: [e] [f]\n");
  EXPECT_EQ(shown(read("a ${b} ${c:-d} $1 $((1 + $n)) `e f` $(g | h)\n")),
            "1:( [e] [f]\n1:( [g]\n1:( [h]\n1: [a] [$b] [$…] [$1] [$…] [$…] [$…]\n");
}

TEST(Shell, PlacesAreThoseOfTheText) {
  const auto script = read("x=1\n  é export AB=c D=\"e\"\n");
  const auto& command = script.commands.at(1);
  EXPECT_EQ(command.words.at(1).span.where(), "a.sh:2:5");
  EXPECT_EQ(read("true; export AB=c").commands.at(1).assignments.at(0).span.where(), "a.sh:1:14");
  EXPECT_EQ(read("true; export AB=c").commands.at(1).assignments.at(0).span.length, 2);
}

TEST(Shell, Assignments) {
  EXPECT_EQ(shown(read("A=1 B='2 3' cmd C=4\nD+=:5\nexport E=\"$F/g\" H\n")),
            "1: A=1 B=2 3 [cmd] [C=4]\n2: D+=:5\n3: E=$F/g [export] [H]\n");
  const auto script = read("A=(1 \"2 3\" $(ls))\nB[2]=x\n");
  EXPECT_TRUE(script.commands.at(1).assignments.at(0).array);
  EXPECT_EQ(shown(script), "1:( [ls]\n1: A=\n2: B=x\n");
}

TEST(Shell, ConditionsLoopsAndFunctionsAreNotSure) {
  EXPECT_EQ(shown(read("if a; then b; else c; fi\nd\nfor x in 1 2; do e; done\nf && g\nh || { i; }\nj\n"
                       "case $x in\n  a|b) k ;;\n  *) l;;\nesac\nm() { n; }\nfunction o {\n  p\n}\n{ q; "
                       "}\n(r)\nwhile s; do t; done; u\n")),
            "1? [a]\n1? [b]\n1? [c]\n2: [d]\n3? [e]\n4: [f]\n4? [g]\n5: [h]\n5? [i]\n6: [j]\n8? [k]\n9? "
            "[l]\n11? [n]\n13? [p]\n"
            "15: [q]\n16: [r]\n17? [s]\n17? [t]\n17: [u]\n");
  EXPECT_EQ(shown(read("a &&\n  b\nc\n[[ $x == \"(\" && -n $y ]] || d\n! e\n")),
            "1: [a]\n2? [b]\n3: [c]\n4? [d]\n5: [e]\n");
}

TEST(Shell, AFailureThatIsLookedAtIsGuarded) {
  const auto script = read("a || b\nif c; then d; fi\n! e\nf\n");
  std::vector<bool> guarded;
  for (const auto& command : script.commands) guarded.push_back(command.guarded);
  EXPECT_EQ(guarded, (std::vector<bool>{true, false, true, false, true, false}));
}

TEST(Shell, WhatAnExpansionWasIsKept) {
  const auto script = read("a ${b:-c} $(d \"e\") $((1 + 2)) `f`\n");
  std::vector<std::string> written;
  for (const auto& word : script.commands.back().words) {
    for (const auto& part : word.parts) written.push_back(part.text);
  }
  EXPECT_EQ(written, (std::vector<std::string>{"a", "${b:-c}", "$(d \"e\")", "$((1 + 2))", "`f`"}));
}

TEST(Shell, ElementsOfAnArray) {
  const auto script = read("A=(1 \"2 3\" # four\n  $b)\n");
  std::vector<std::string> shown;
  for (const auto& one : script.commands.at(0).assignments.at(0).elements) shown.push_back(one.shown());
  EXPECT_EQ(shown, (std::vector<std::string>{"1", "2 3", "$b"}));
}

TEST(Shell, WhatRunsInTheBackground) {
  const auto script = read("a &\nb && c &\nd; e 2>&1\nf & g\n");
  std::string background;
  for (const auto& command : script.commands) background += command.background ? command.name() : "";
  EXPECT_EQ(background, "acf");
}

TEST(Shell, Heredocs) {
  const auto script = read("cat <<EOF > x; b\n$A\nEOF\nc <<-'END' | d\n\texport B=1\n\tEND\ne <<< $F\n");
  EXPECT_EQ(shown(script), "1: [cat]\n1: [b]\n4: [c]\n4: [d]\n7: [e] [$F]\n");
  EXPECT_EQ(script.commands.at(0).heredocs.at(0).text, "$A\n");
  EXPECT_EQ(script.commands.at(0).heredocs.at(0).span.line, 2);
  EXPECT_TRUE(script.commands.at(2).heredocs.at(0).literal);
  EXPECT_EQ(script.uses, (std::vector<std::string>{"A", "F"}));
}

TEST(Shell, RedirectionsAreNoWords) {
  EXPECT_EQ(shown(read("a > b 2>&1 < c >> d &> e &\nf |& g\nh <(i) \n")),
            "1: [a]\n2: [f]\n2: [g]\n3:( [i]\n3: [h]\n");
}

TEST(Shell, WhatIsOpenIsSaidOnceAndTheRestIsRead) {
  EXPECT_EQ(shown(read("a 'b\nexport C=1\nd 'e\nexport F=2\n")),
            "1: [a] [b\nexport C=1\nd e]\n4: F=2 [export]\n");
  EXPECT_EQ(
      shown(read("a \"b\nexport C=1\nd $(e)\n")),
      "1: [a] [$…]\n2: C=1 [export]\n3:( [e]\n3: [d] [$…]\n"
      "a.sh:1:3 a quote that nothing closes; the lines behind it are read as if it ended with its own\n");
  EXPECT_EQ(
      shown(read("if a; then\n b\ncat <<E\nc\n")),
      "1? [a]\n2? [b]\n3? [cat]\na.sh:3:5 the text up to 'E' is never closed\na.sh:1:1 'if' is not closed\n");
  EXPECT_EQ(shown(read("a $(b\nc\n")), "1: [a] [$…]\n1: [b]\n2: [c]\na.sh:1:3 '$(' is not closed\n");
}

TEST(Shell, DeepNestingEnds) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "$(a ";
  for (int i = 0; i < 5000; ++i) text += ")";
  const auto script = read(text);
  EXPECT_EQ(script.unread.at(0).message, "more than 64 substitutions in each other");
}

}  // namespace
}  // namespace nlaunch::lint
