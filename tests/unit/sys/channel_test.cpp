#include "sys/channel.h"

#include <gtest/gtest.h>

#include "unit/run_until.h"

namespace nlaunch::sys {
namespace {

using namespace std::chrono_literals;

class Lines : public testing::Test {
 protected:
  void open() {
    listener_ = Listener::open(loop_, [this](auto channel) { near_ = std::move(channel); }).value();
    connecting_ = std::make_unique<Connecting>(
        loop_, std::vector<std::string>{"127.0.0.2", "127.0.0.1"}, listener_->port(), 5s,
        [this](auto channel, const auto&) { far_ = std::move(channel); });
    run_until(loop_, [this] { return near_ && far_; });
    near_->set({.line = [this](std::string_view line) { lines_.emplace_back(line); },
                .closed = [this] { closed_ = true; }});
  }

  Loop loop_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connecting> connecting_;
  std::unique_ptr<Channel> near_, far_;
  std::vector<std::string> lines_;
  bool closed_ = false;
};

TEST_F(Lines, ArriveWholeAndInOrder) {
  open();
  const std::string large(3U << 20U, 'x');
  far_->send("one");
  far_->send(large);
  far_->send("");
  far_->send("last");
  run_until(loop_, [this] { return lines_.size() == 4; });
  EXPECT_EQ(lines_[0], "one");
  EXPECT_EQ(lines_[1], large);
  EXPECT_EQ(lines_[2], "");
  EXPECT_EQ(lines_[3], "last");
}

TEST_F(Lines, TheEndIsToldOnceAndAfterTheLastLine) {
  open();
  far_->send("last words");
  far_.reset();
  run_until(loop_, [this] { return closed_; });
  EXPECT_EQ(lines_, (std::vector<std::string>{"last words"}));
  near_->send("to nobody");
}

TEST_F(Lines, AMachineIsFoundByItsName) {
  listener_ = Listener::open(loop_, [this](auto channel) { near_ = std::move(channel); }).value();
  connecting_ =
      std::make_unique<Connecting>(loop_, std::vector<std::string>{"localhost"}, listener_->port(), 5s,
                                   [this](auto channel, const auto&) { far_ = std::move(channel); });
  run_until(loop_, [this] { return near_ && far_; });
}

TEST_F(Lines, AKnownPortIsTakenAgainAtOnceAndByOneAlone) {
  open();
  const auto port = listener_->port();
  const auto second = Listener::open(loop_, [](auto) {}, {port});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().first_message(),
            fmt::format("cannot listen on TCP port {}: Address already in use", port));
  listener_.reset();
  EXPECT_TRUE(Listener::open(loop_, [](auto) {}, {port}));
}

TEST_F(Lines, OnOneAddressNobodyComesByAnother) {
  listener_ =
      Listener::open(loop_, [this](auto channel) { near_ = std::move(channel); }, {0, "127.0.0.2"}).value();
  std::string why;
  const Connecting other(loop_, {"127.0.0.1"}, listener_->port(), 1s,
                         [&](auto, const auto& reason) { why = reason; });
  run_until(loop_, [&] { return !why.empty(); });
  EXPECT_EQ(why, "127.0.0.1: Connection refused");
  const Connecting one(loop_, {"127.0.0.2"}, listener_->port(), 1s,
                       [this](auto channel, const auto&) { far_ = std::move(channel); });
  run_until(loop_, [this] { return near_ && far_; });
}

TEST_F(Lines, NobodyThereIsSaidWithTheReason) {
  listener_ = Listener::open(loop_, [](auto) {}).value();
  const auto port = listener_->port();
  listener_.reset();
  std::string why;
  connecting_ = std::make_unique<Connecting>(loop_, std::vector<std::string>{"127.0.0.1", "name.invalid"},
                                             port, 300ms, [&](auto channel, const auto& reason) {
                                               EXPECT_FALSE(channel);
                                               why = reason;
                                             });
  run_until(loop_, [&] { return !why.empty(); });
  EXPECT_TRUE(why.starts_with("127.0.0.1: Connection refused; name.invalid: Host not found")) << why;
}

}  // namespace
}  // namespace nlaunch::sys
