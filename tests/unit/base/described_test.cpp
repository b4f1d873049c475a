#include "base/described.h"

#include <gtest/gtest.h>

#include "base/words.h"

namespace nlaunch {
namespace {

TEST(Described, AWordIsTheNameOfItsEnumerator) {
  EXPECT_EQ(name_of(RoleKind::engine), "engine");
  EXPECT_EQ(value_of<RoleKind>("engine"), RoleKind::engine);
  EXPECT_EQ(name_of(Walltime::Then::requeue), "requeue");
  EXPECT_EQ(value_of<RoleKind>("Engine"), std::nullopt);
  EXPECT_EQ(value_of<RoleKind>(""), std::nullopt);
}

TEST(Described, TheListSaysInWhichOrderMessagesHaveThem) {
  EXPECT_EQ(kWords<Rendezvous>, (std::array<std::string_view, 2>{"torch", "none"}));
  EXPECT_EQ(kValues<Rendezvous>, (std::array{Rendezvous::torch, Rendezvous::none}));
}

TEST(Described, WhatIsNoEnumeratorHasNoWord) {
  EXPECT_EQ(name_of(static_cast<RoleKind>(99)), "?");
}

}  // namespace
}  // namespace nlaunch
