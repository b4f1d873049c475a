#pragma once
#include <array>
#include <string_view>

#include "base/collective.h"
#include "base/words.h"
#include "config/experiment.h"

/// The words that a key may hold, for each enumeration.
namespace nlaunch::config {

template <class E>
struct Choices;

template <>
struct Choices<RoleKind> {
  static constexpr std::array<std::string_view, 3> words{"learner", "engine", "service"};
  static constexpr std::array values{RoleKind::learner, RoleKind::engine, RoleKind::service};
};
template <>
struct Choices<Rendezvous> {
  static constexpr std::array<std::string_view, 2> words{"torch", "none"};
  static constexpr std::array values{Rendezvous::torch, Rendezvous::none};
};
template <>
struct Choices<PreloadScope> {
  static constexpr std::array<std::string_view, 2> words{"process", "tree"};
  static constexpr std::array values{PreloadScope::process, PreloadScope::tree};
};
template <>
struct Choices<Backend> {
  static constexpr std::array<std::string_view, 2> words{"nccl", "gloo"};
  static constexpr std::array values{Backend::nccl, Backend::gloo};
};
template <>
struct Choices<AuditMode> {
  static constexpr std::array<std::string_view, 2> words{"report", "enforce"};
  static constexpr std::array values{AuditMode::report, AuditMode::enforce};
};
template <>
struct Choices<PreflightLevel> {
  static constexpr std::array<std::string_view, 3> words{"quick", "standard", "deep"};
  static constexpr std::array values{PreflightLevel::quick, PreflightLevel::standard, PreflightLevel::deep};
};
template <>
struct Choices<Collective> {
  static constexpr std::array<std::string_view, 5> words{"all_reduce", "broadcast", "all_gather",
                                                         "reduce_scatter", "send_recv"};
  static constexpr auto values = kCollectives;
};
template <>
struct Choices<DataType> {
  static constexpr std::array<std::string_view, 4> words{"f32", "f16", "bf16", "i32"};
  static constexpr auto values = kDataTypes;
};
template <>
struct Choices<BeakerPriority> {
  static constexpr std::array<std::string_view, 5> words{"low", "normal", "high", "urgent", "immediate"};
  static constexpr std::array values{BeakerPriority::low, BeakerPriority::normal, BeakerPriority::high,
                                     BeakerPriority::urgent, BeakerPriority::immediate};
};
template <>
struct Choices<Role::Per> {
  static constexpr std::array<std::string_view, 2> words{"job", "node"};
  static constexpr std::array values{Role::Per::job, Role::Per::node};
};
template <>
struct Choices<Walltime::Then> {
  static constexpr std::array<std::string_view, 3> words{"stop", "requeue", "chain"};
  static constexpr std::array values{Walltime::Then::stop, Walltime::Then::requeue, Walltime::Then::chain};
};
template <>
struct Choices<OnStall> {
  static constexpr std::array<std::string_view, 4> words{"warn", "dump", "abort", "restart"};
  static constexpr std::array values{OnStall::warn, OnStall::dump, OnStall::abort, OnStall::restart};
};

}  // namespace nlaunch::config
