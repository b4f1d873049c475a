#include "lint/secrets.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(Secrets, ThePasswordOfAnAddress) {
  EXPECT_EQ(password_in("https://me:hunter2@host/path"), "hunter2");
  EXPECT_EQ(password_in("://a:b@c"), "b");
  EXPECT_EQ(password_in("https://me:a:b@host"), "a:b");
  EXPECT_EQ(password_in("redis://:pw@host"), "pw");
  EXPECT_EQ(password_in("from http://a.b/c to http://me:pw@host"), "pw");
  EXPECT_EQ(password_in("x://://me:pw@host"), "pw");
  EXPECT_EQ(password_in("https://me:old@sha256:1 https://me:pw@host"), "pw");
}

TEST(Secrets, AnAddressWithoutAPassword) {
  for (const auto* address : {"", "https://host", "https://host/a:b@c", "https://me@host", "https://me:@host",
                              "https://me:$PW@host", "docker://image:tag@sha256:0123", "me:pw@host",
                              "https://a:b 'c@d'", "https://a:\"b@c", "https://me:pw"}) {
    EXPECT_EQ(password_in(address), "") << address;
  }
}

TEST(Secrets, KeysBeginAsThoseOfServicesDo) {
  for (const std::string key : {"hf_Abcdefgh1234", "sk-proj-Abcdefgh_12345", "ghp_Abcdefgh1234",
                                "gho_Abcdefgh1234", "github_pat_Abcdefgh_1234", "glpat-Abcdefgh-1234",
                                "AKIAABCDEFGH1234", "xoxb-1234-5678-Abcd", "xoxp-1234_5678_Abcd"}) {
    EXPECT_EQ(key_in(key), key);
    EXPECT_EQ(key_in("a " + key + " b"), key);
    EXPECT_EQ(key_in("a='" + key + "'"), key);
  }
}

TEST(Secrets, OfSomeServicesAKeyIsOneWord) {
  for (const auto* text : {"hf_Abcdefgh_1234567", "hf_Abcdefgh-1234567", "ghp_Abcdefgh_1234567",
                           "gho_Abcdefgh-1234567", "AKIAABCDEFGH-1234567"}) {
    EXPECT_EQ(key_in(text), "") << text;
  }
}

TEST(Secrets, AKeyIsLongAndNotOfSmallLettersAlone) {
  EXPECT_EQ(key_in("hf_Abcdefgh123"), "");
  EXPECT_EQ(key_in("  hf_Abcdefgh123  "), "");
  EXPECT_EQ(key_in("  hf_Abcdefgh1234  "), "hf_Abcdefgh1234");
  EXPECT_EQ(key_in("hf_abcdefghijklmn"), "");
  EXPECT_EQ(key_in("hf_123456789012"), "hf_123456789012");
  EXPECT_EQ(key_in("hf_ABCDEFGHIJKL"), "hf_ABCDEFGHIJKL");
  EXPECT_EQ(key_in("hf_abcdefghijkL"), "hf_abcdefghijkL");
  EXPECT_EQ(key_in("hf_xxxxxxxxxxxxxxxx1"), "");
  EXPECT_EQ(key_in("sk-learn-is-a-package"), "");
}

TEST(Secrets, AKeyIsAWordOfItsOwn) {
  const std::string key = "hf_Abcdefgh1234";
  for (const std::string before : {"a", "m", "z", "A", "Z", "0", "9", "_", "-"}) {
    EXPECT_EQ(key_in(before + key), "") << before;
    EXPECT_EQ(key_in("  " + before + key), "") << before;
  }
  for (const std::string before : {"`", "{", "@", "[", "/", ":", " ", "="}) {
    EXPECT_EQ(key_in(before + key), key) << before;
    EXPECT_EQ(key_in(key + before + "x"), key) << before;
  }
  EXPECT_EQ(key_in("x" + key + " " + key + "5"), key + "5");
  for (const std::string behind : {"a", "z", "A", "Z", "0", "9"}) {
    EXPECT_EQ(key_in(key + behind + "."), key + behind);
  }
  EXPECT_EQ(key_in("sk-Abcdefgh1234-_."), "sk-Abcdefgh1234-_");
}

TEST(Secrets, OnlyThePartOfATextThatIsGivenIsLookedAt) {
  const std::string text = "xhf_Abcdefgh1234567";
  EXPECT_EQ(key_in(std::string_view(text).substr(1)), "hf_Abcdefgh1234567");
  EXPECT_EQ(key_in(std::string_view(text).substr(1, 15)), "hf_Abcdefgh1234");
}

TEST(Secrets, WordsThatStandForAValue) {
  for (const auto* word : {"",
                           "1234567",
                           "your-token",
                           "YOUR_TOKEN_HERE",
                           "xxxxxxxx",
                           "<the token>",
                           "abcd....",
                           "********",
                           "ChangeMe",
                           "todo-later",
                           "replace-me",
                           "dummy-key",
                           "offline",
                           "disabled",
                           "DISABLED",
                           "TO_BE_FILLED",
                           "to-be-filled-in",
                           "MY_API_KEY",
                           "HF_TOKEN_2",
                           "e2b_0000000000000000",
                           "placeholder1"}) {
    EXPECT_TRUE(is_to_be_filled_in(word)) << word;
  }
  for (const auto* word : {"12345678", "abcdefgh", "disabled1", "..secret..", "ABCDEFGH", "A_B_C_D1",
                           "A_B_C_100", "a_0000000"}) {
    EXPECT_FALSE(is_to_be_filled_in(word)) << word;
  }
}

TEST(Secrets, APathASentenceAndANumberAreNone) {
  for (const auto* value : {"/a/b", "a/b", "two words", "1234.5678", "123", ""}) {
    EXPECT_FALSE(may_be_secret(value)) << value;
  }
  for (const auto* value : {"abc", "123a", "1.2-3"}) EXPECT_TRUE(may_be_secret(value)) << value;
}

/// "what: value" of the secrets among a line's words.
Texts exposed(const std::string& line) {
  Texts out;
  for (const auto& one : script(line + "\n").secrets) out.push_back(one.what + ": " + one.value);
  return out;
}

TEST(Secrets, OptionsThatTakeThem) {
  for (const std::string option :
       {"--token", "--api-key", "--API_KEY", "-api-key", "--wandb-api-key", "--access-key", "--secret-key",
        "--auth-key", "--password", "--db.password", "--client-secret", "--api-token", "--auth-token",
        "--access-token", "--hub-token", "--hf-token", "--bot-token"}) {
    EXPECT_EQ(exposed("serve " + option + " s3cr3t-value"),
              Texts{"the value of " + option + ": s3cr3t-value"});
    EXPECT_EQ(exposed("serve a " + option + "=s3cr3t-value"),
              Texts{"the value of " + option + ": s3cr3t-value"});
  }
  for (const std::string option : {"--eos-token", "--label-key", "--tokens", "--key", "--password-file"}) {
    EXPECT_EQ(exposed("serve " + option + " s3cr3t-value"), Texts{}) << option;
    EXPECT_EQ(exposed("serve " + option + "=s3cr3t-value"), Texts{}) << option;
  }
}

TEST(Secrets, SettingsOfHydraAreOptionsToo) {
  EXPECT_EQ(exposed("train +trainer.api_key=s3cr3t-value"),
            Texts{"the value of +trainer.api_key: s3cr3t-value"});
  EXPECT_EQ(exposed("train trainer.token=s3cr3t-value"), Texts{"the value of trainer.token: s3cr3t-value"});
  EXPECT_EQ(exposed("train --login token=s3cr3t-value"), Texts{"the value of token: s3cr3t-value"});
}

TEST(Secrets, AValueThatIsNoSecretIsNone) {
  for (const std::string value : {"$TOKEN", "a$TOKEN-abcdef", "-abcdefgh", "~/.token/a", "12345678901",
                                  "your-token", "abcdefg", "'two words'"}) {
    EXPECT_EQ(exposed("serve --token " + value), Texts{}) << value;
    EXPECT_EQ(exposed("serve --token=" + value), Texts{}) << value;
  }
  EXPECT_EQ(exposed("echo token s3cr3t-value"), Texts{});
  EXPECT_EQ(exposed("serve --token"), Texts{});
  EXPECT_EQ(exposed("serve s3cr3t-value --token"), Texts{});
}

TEST(Secrets, TheNameOfACommandIsNoOption) {
  EXPECT_EQ(exposed("api-key=s3cr3t-value"), Texts{});
  EXPECT_EQ(exposed("--token s3cr3t-value"), Texts{"the value of --token: s3cr3t-value"});
}

TEST(Secrets, TheKeyOfWandbLogin) {
  const std::string key = "abcdefghij0123456789";
  EXPECT_EQ(exposed("wandb login " + key), Texts{"the key of wandb login: " + key});
  EXPECT_EQ(exposed("/opt/bin/wandb login --relogin " + key), Texts{"the key of wandb login: " + key});
  EXPECT_EQ(exposed("wandb login " + key.substr(1)), Texts{});
  EXPECT_EQ(exposed("wandb login --" + key), Texts{});
  EXPECT_EQ(exposed("wandb login --host " + key), Texts{});
  EXPECT_EQ(exposed("wandb login --host a.b " + key), Texts{"the key of wandb login: " + key});
  EXPECT_EQ(exposed("wandb sync " + key), Texts{});
  EXPECT_EQ(exposed("other login " + key), Texts{});
  EXPECT_EQ(exposed("wandb login 01234567890123456789"), Texts{});
  EXPECT_EQ(exposed("wandb"), Texts{});
}

TEST(Secrets, AddressesAndKeysAmongTheWords) {
  EXPECT_EQ(exposed("git clone https://me:hunter2@host/x"), Texts{"the password in a URL: hunter2"});
  EXPECT_EQ(exposed("curl -H 'Bearer hf_Abcdefgh1234'"), Texts{"what looks like a key: hf_Abcdefgh1234"});
  EXPECT_EQ(exposed("hf_Abcdefgh1234 a"), Texts{"what looks like a key: hf_Abcdefgh1234"});
  EXPECT_EQ(exposed("git clone https://host/x hf_transfer"), Texts{});
  EXPECT_EQ(exposed("a --token s3cr3t-value sk-Abcdefgh1234"),
            (Texts{"the value of --token: s3cr3t-value", "what looks like a key: sk-Abcdefgh1234"}));
}

TEST(Secrets, EachHasThePlaceOfItsWord) {
  const auto input = script("true\nserve --token s3cr3t-value\n");
  ASSERT_EQ(input.secrets.size(), 1U);
  EXPECT_EQ(input.secrets[0].span.where(), "job.sh:2:15");
}

}  // namespace
}  // namespace nlaunch::lint
