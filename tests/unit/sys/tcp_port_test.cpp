#include "sys/tcp_port.h"

#include <gtest/gtest.h>

namespace nlaunch::sys {
namespace {

using Rows = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

TEST(KernelPorts, AreReadAsTheKernelWritesThem) {
  const auto ports = parse_kernel_ports("9000\t65000\n", "2379-2380,6443,x,7000-\n");
  EXPECT_EQ(ports.ephemeral, (std::pair<std::uint16_t, std::uint16_t>(9000, 65000)));
  EXPECT_EQ(ports.reserved, (Rows{{2379, 2380}, {6443, 6443}}));
  for (const auto port : std::initializer_list<std::uint16_t>{2379, 2380, 6443, 9000, 65000})
    EXPECT_TRUE(ports.has(port)) << port;
  for (const auto port : std::initializer_list<std::uint16_t>{2378, 2381, 6444, 8999, 65001})
    EXPECT_FALSE(ports.has(port)) << port;
}

TEST(KernelPorts, WhatCannotBeReadIsAsByDefault) {
  for (const auto* range : {"", "x y", "60999 32768", "1 99999"}) {
    const auto ports = parse_kernel_ports(range, "\n");
    EXPECT_EQ(ports.ephemeral, KernelPorts{}.ephemeral) << range;
    EXPECT_EQ(ports.reserved, Rows{});
  }
}

TEST(HeldPort, IsNotToBeHadByAnother) {
  std::uint16_t port = 23456;
  auto held = hold_port(port);
  while (!held) held = hold_port(++port);
  EXPECT_EQ(try_to_listen(port), std::errc::address_in_use);
  EXPECT_FALSE(hold_port(port));
  held = {};
  EXPECT_FALSE(try_to_listen(port));
}

}  // namespace
}  // namespace nlaunch::sys
