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

TEST(Shell, QuotesAndEscapes) {
  EXPECT_EQ(shown(read("a \"b\\\"c\\\\d\\$e\\`f\\g\" \"h\\\ni\"\n")), "1: [a] [b\"c\\d$e`f\\g] [hi]\n");
  EXPECT_EQ(shown(read("$'a\\'b\\\\c\\td' e$\"f $g\" h\\\ni\\\r\nj \\$k\n")),
            "1: [a'b\\c\td] [ef $g] [hij] [$k]\n");
  EXPECT_EQ(shown(read("a ''\"\" b'' \\\nc\n")), "1: [a] [] [b] [c]\n");
  EXPECT_EQ(shown(read("a\\")), "1: [a]\n");
  EXPECT_EQ(shown(read("a b\\\r\n  c\r\nd\r\n")), "1: [a] [b] [c]\n3: [d]\n");
}

TEST(Shell, WhatIsInQuotesIsQuoted) {
  const auto script = read("a 'b' \"c\" d\\ e $'f' $g \"$h\" i'j'\n");
  std::string quoted;
  for (const auto& word : script.commands.at(0).words) quoted += word.quoted ? "q" : ".";
  EXPECT_EQ(quoted, ".qqqq.qq");
}

TEST(Shell, VariablesAndWhatIsNone) {
  EXPECT_EQ(shown(read("$? $# $@ $* $$ $! $- $0 $9 $_a9 ${b} $ $% a$\n")),
            "1: [$?] [$#] [$@] [$*] [$$] [$!] [$-] [$0] [$9] [$_a9] [$b] [$] [$%] [a$]\n");
  EXPECT_EQ(shown(read("${a:-b} ${#c} ${d[1]} ${1} ${} $10\n")), "1: [$…] [$…] [$…] [$…] [$…] [$10]\n");
  EXPECT_EQ(read("$a ${b} ${c:-$d} ${e:-${f}g} ${#h} \"$k\" '$l' \\$m $1\n").uses,
            (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "k"}));
}

TEST(Shell, ResolvingTakesTheValuesOfVariables) {
  const auto resolve = [](const std::string& text, const std::string& value) {
    const auto script = read("a " + text + "\n");
    return script.commands.back().words.at(1).resolve(
        [&](std::string_view name) { return name == "b" ? std::optional(value) : std::nullopt; });
  };
  EXPECT_EQ(resolve("x$b/$b", "1"), "x1/1");
  EXPECT_EQ(resolve("$c", "1"), std::nullopt);
  EXPECT_EQ(resolve("$(d)", "1"), std::nullopt);
  EXPECT_EQ(resolve("$b", std::string(1024, 'x')), std::string(1024, 'x'));
  EXPECT_EQ(resolve("$b", std::string(1025, 'x')), std::nullopt);
  EXPECT_EQ(resolve("y$b", std::string(1024, 'x')), std::nullopt);
}

TEST(Shell, NamesOfCommands) {
  const auto name = [](const std::string& text) { return read(text).commands.at(0).name(); };
  EXPECT_EQ(name("a b\n"), "a");
  EXPECT_EQ(name("/usr/bin/a b\n"), "a");
  EXPECT_EQ(name("$a b\n"), "");
  EXPECT_EQ(name("A=b\n"), "");
}

TEST(Shell, SubstitutionsEndWhereTheyAreClosed) {
  EXPECT_EQ(shown(read("a $(b (c) ')' \")\" \"\\\"\" \\) d) e\n")),
            "1:( [b]\n1:( [c]\n1:( [)] [)] [\"] [)] [d]\n1: [a] [$…] [e]\n");
  EXPECT_EQ(shown(read("a $(b # )\nc) d\n")), "1:( [b]\n2:( [c]\n1: [a] [$…] [d]\n");
  EXPECT_EQ(shown(read("a ${b:-{c\\}}} d\n")), "1: [a] [$…] [d]\n");
  EXPECT_EQ(shown(read("a $((1 + (2))) $(((3))) b\n")), "1: [a] [$…] [$…] [b]\n");
  EXPECT_EQ(shown(read("a `b \\` c` d\n")), "1:( [b] [`] [c]\n1: [a] [$…] [d]\n");
  EXPECT_EQ(shown(read("a $(b $(c) \"$(d)\") e\n")),
            "1:( [c]\n1:( [d]\n1:( [b] [$…] [$…]\n1: [a] [$…] [e]\n");
}

TEST(Shell, WhatIsNotClosedIsSaid) {
  EXPECT_EQ(shown(read("a `b\n")), "1: [a] [$…b]\na.sh:1:3 a backtick that nothing closes\n");
  EXPECT_EQ(shown(read("a ${b\nc\n")), "1: [a] [$…{b]\n2: [c]\na.sh:1:3 '${' is not closed\n");
  EXPECT_EQ(shown(read("((a\nb\n")), "1: [a]\n2: [b]\na.sh:1:1 '((' is not closed\n");
  EXPECT_EQ(shown(read("while a; do b\n")), "1? [a]\n1? [b]\na.sh:1:1 'do' is not closed\n");
  EXPECT_EQ(shown(read("case a in\nb) c\n")), "2? [c]\na.sh:1:1 'case' is not closed\n");
  EXPECT_EQ(shown(read("{ a; (b\n")), "1: [a]\n1: [b]\n");
}

TEST(Shell, ALongExpansionIsNotKept) {
  const auto text_of = [](std::size_t length) {
    const auto script = read("a ${b:-" + std::string(length, 'x') + "}\n");
    return script.commands.at(0).words.at(1).parts.at(0).text.size();
  };
  EXPECT_EQ(text_of(4096 - 6), 4096U);
  EXPECT_EQ(text_of(4096 - 5), 0U);
}

TEST(Shell, SixtyFourLevelsAreRead) {
  const auto unread = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += "$(a ";
    for (int i = 0; i < levels; ++i) text += ")";
    return read(text).unread.size();
  };
  EXPECT_EQ(unread(64), 0U);
  EXPECT_EQ(unread(65), 1U);
}

TEST(Shell, WordsThatOnlyLookLikeAssignments) {
  EXPECT_EQ(shown(read("a B=1\n1A=2\nB-C=3\n\"D\"=4\nE[1=5\nF [2]=6\n")),
            "1: [a] [B=1]\n2: [1A=2]\n3: [B-C=3]\n4: [D=4]\n5: [E[1=5]\n6: [F] [[2]=6]\n");
  EXPECT_EQ(shown(read("A[1]=2 B+=3 C[x]+=4 D= e\n")), "1: A=2 B+=3 C+=4 D= [e]\n");
  const auto script = read("declare -A A=([b]=c) D[1]=e\n");
  EXPECT_TRUE(script.commands.at(0).assignments.at(0).array);
  EXPECT_TRUE(script.commands.at(0).assignments.at(1).array);
  EXPECT_FALSE(read("A=1\n").commands.at(0).assignments.at(0).array);
}

TEST(Shell, NumbersInFrontOfRedirectionsAreNone) {
  EXPECT_EQ(shown(read("a 2>b 12 > c 3<d 4e\n")), "1: [a] [12] [4e]\n");
  EXPECT_EQ(shown(read("a >| b >& c <> d e >f; g\n")), "1: [a] [e]\n1: [g]\n");
  EXPECT_EQ(shown(read("a >(b) <(c d) e <(\n")), "1:( [b]\n1:( [c] [d]\n1: [a] [e]\n");
}

TEST(Shell, SeveralHeredocsStandBehindEachOther) {
  const auto script = read("a <<A <<\"B\"; c <<-C\n1\nA\n$2\nB\n\t3\n\t\tC\nd\n");
  EXPECT_EQ(shown(script), "1: [a]\n1: [c]\n8: [d]\n");
  ASSERT_EQ(script.commands.at(0).heredocs.size(), 2U);
  EXPECT_EQ(script.commands.at(0).heredocs.at(0).text, "1\n");
  EXPECT_FALSE(script.commands.at(0).heredocs.at(0).literal);
  EXPECT_EQ(script.commands.at(0).heredocs.at(1).text, "$2\n");
  EXPECT_TRUE(script.commands.at(0).heredocs.at(1).literal);
  EXPECT_EQ(script.commands.at(0).heredocs.at(1).span.line, 4U);
  EXPECT_EQ(script.commands.at(1).heredocs.at(0).text, "\t3\n");
  EXPECT_EQ(read("a <<A\n$b ${c} \\$d\nA\n").uses, (std::vector<std::string>{"b", "c", "d"}));
  EXPECT_EQ(read("a <<'A'\n$b\nA\n").uses, std::vector<std::string>{});
  EXPECT_EQ(shown(read("a <<A\r\nb\r\nA\r\nc\n")), "1: [a]\n4: [c]\n");
  EXPECT_EQ(shown(read("a <<A\nb\nA")), "1: [a]\n");
}

TEST(Shell, CasesHavePatterns) {
  EXPECT_EQ(shown(read("case $a in\n  # one\n  (b) c;;\n  \"d)\" | 'e)') f;;&\n  g) h ;;\n  *)\n    i\n    "
                       ";;\nesac\nj\n")),
            "3? [c]\n4? [f]\n5? [h]\n7? [i]\n10: [j]\n");
  EXPECT_EQ(shown(read("case a in b) c;; esac; d\ncase e\nin f) g;; esac\nh\n")),
            "1? [c]\n1: [d]\n3? [g]\n4: [h]\n");
}

TEST(Shell, LoopsAndTheirHeads) {
  EXPECT_EQ(shown(read("for a in b $c; do d; done; e\nfor ((i = 0; i < 9; ++i)); do f; done\ng\n")),
            "1? [d]\n1: [e]\n2? [f]\n3: [g]\n");
  EXPECT_EQ(shown(read("until a; do b; done\nselect c in d; do e; done\nfor f; do g; done\ntime h\n")),
            "1? [a]\n1? [b]\n2? [e]\n3? [g]\n4: [h]\n");
  EXPECT_EQ(read("for a in $b \"${c}\"; do d; done\n").uses, (std::vector<std::string>{"b", "c"}));
}

TEST(Shell, FunctionsAreNotRunWhereTheyStand) {
  EXPECT_EQ(shown(read("a() {\n b\n}\nfunction c() { d; }\nfunction e\n{\n f\n}\n{ g; }\nh () { i; }\nj\n")),
            "2? [b]\n4? [d]\n7? [f]\n9: [g]\n10? [i]\n11: [j]\n");
  EXPECT_EQ(shown(read("a (b)\n")), "1: [a]\n1: [b]\n");
}

TEST(Shell, ReservedWordsAreSoAtTheStartAlone) {
  EXPECT_EQ(shown(read("echo if then fi { }\n\"if\" a\n'{' b\nA=1 if c\n")),
            "1: [echo] [if] [then] [fi] [{] [}]\n2: [if] [a]\n3: [{] [b]\n4: A=1 [if] [c]\n");
  EXPECT_EQ(shown(read("fi\na\ndone\nesac\n}\n)\nb\n")), "2: [a]\n7: [b]\n");
  EXPECT_EQ(shown(read("if a; then { b; }; (c); fi; d\n")), "1? [a]\n1? [b]\n1? [c]\n1: [d]\n");
  EXPECT_EQ(shown(read("if a; then b; elif c; then d; fi\n")), "1? [a]\n1? [b]\n1? [c]\n1? [d]\n");
}

TEST(Shell, TestsAndArithmeticAreNoCommands) {
  EXPECT_EQ(shown(read("[[ a && b ]]; c\n[[ -n $d &&\\\n -n e ]] && f\n((g++)); h\n")),
            "1: [c]\n3? [f]\n4: [h]\n");
  EXPECT_EQ(read("[[ $a == \"$b\" ]]\n(( c + $d ))\n").uses, (std::vector<std::string>{"a", "b", "d"}));
}

/// The names of commands that run only where something was so.
std::string conditional(const std::string& text) {
  std::string out;
  for (const auto& one : read(text).commands) out += one.conditional ? one.name() : "";
  return out;
}

TEST(Shell, AFunctionAloneIsNoCondition) {
  EXPECT_EQ(conditional("f() { a; if b; then c; fi; d; }\ne\n"), "bc");
  EXPECT_EQ(conditional("for x in 1; do a; done; while b; do c; done; case x in y) d;; esac; e\n"), "abcd");
  EXPECT_EQ(conditional("if a; then f() { b; }; x=$(c); fi\nx=$(d)\n"), "abc");
}

TEST(Shell, BehindAStepAndAndItGoesOn) {
  EXPECT_EQ(conditional("a || b\ncd x && c\nd && e\n[[ x ]] && f\nA=1 && g\n"), "bef");
  EXPECT_EQ(conditional("mkdir x && cd x && a\ncd x && b || c && d\ne | f & g; h\n"), "cd");
  for (const std::string step :
       {"cd", "export A=1", "source", ".", "module", "ml", "conda", "mamba", "mkdir", "set", "unset",
        "ulimit", "pip", "pip3", "uv", "eval", "echo", "python", "python3"}) {
    EXPECT_EQ(conditional(step + " && a\n"), "") << step;
  }
}

TEST(Shell, WhatIsChainedIsNotSure) {
  EXPECT_EQ(shown(read("a | b; c && d; e\nf || g | h\ni &&\n\n  j\nk && # why\n  l\nm\n")),
            "1: [a]\n1: [b]\n1: [c]\n1? [d]\n1: [e]\n2: [f]\n2? [g]\n2: [h]\n3: [i]\n5? [j]\n6: [k]\n7? "
            "[l]\n8: [m]\n");
}

TEST(Shell, CommentsAreKept) {
  std::string comments;
  for (const auto& one : read("#!/bin/sh\na # b\r\nc#d \"# e\" \\# f\n  # g\nA=(1 # h\n)").comments)
    comments += one.span.where() + "+" + std::to_string(one.span.length) + " " + one.text + "\n";
  EXPECT_EQ(comments, "a.sh:1:1+9 #!/bin/sh\na.sh:2:3+4 # b\na.sh:4:3+3 # g\na.sh:5:6+3 # h\n");
}

TEST(Shell, PlacesAndLengths) {
  const auto script = read("ab  'c d'  $(e\n f)\n");
  std::string places;
  for (const auto& command : script.commands) {
    for (const auto& word : command.words)
      places += word.span.where() + "+" + std::to_string(word.span.length) + " ";
  }
  EXPECT_EQ(places, "a.sh:1:14+1 a.sh:2:2+1 a.sh:1:1+2 a.sh:1:5+5 a.sh:1:12+1 ");
}

}  // namespace
}  // namespace nlaunch::lint
