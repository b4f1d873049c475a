#include "base/words.h"

namespace nlaunch {

std::string_view name_of(RoleKind kind) {
  switch (kind) {
    case RoleKind::learner:
      return "learner";
    case RoleKind::engine:
      return "engine";
    case RoleKind::service:
      return "service";
  }
  return "?";
}

std::string_view name_of(Rendezvous rendezvous) {
  return rendezvous == Rendezvous::torch ? "torch" : "none";
}
std::string_view name_of(PreloadScope scope) {
  return scope == PreloadScope::tree ? "tree" : "process";
}
std::string_view name_of(PreflightLevel level) {
  switch (level) {
    case PreflightLevel::quick:
      return "quick";
    case PreflightLevel::standard:
      return "standard";
    case PreflightLevel::deep:
      return "deep";
  }
  return "";
}
std::string_view name_of(AuditMode mode) {
  return mode == AuditMode::enforce ? "enforce" : "report";
}

std::string_view name_of(Walltime::Then then) {
  switch (then) {
    case Walltime::Then::stop:
      return "stop";
    case Walltime::Then::requeue:
      return "requeue";
    case Walltime::Then::chain:
      return "chain";
  }
  return "?";
}

std::string_view name_of(OnStall on_stall) {
  switch (on_stall) {
    case OnStall::warn:
      return "warn";
    case OnStall::dump:
      return "dump";
    case OnStall::abort:
      return "abort";
    case OnStall::restart:
      return "restart";
  }
  return "?";
}

std::string_view name_of(BeakerPriority priority) {
  switch (priority) {
    case BeakerPriority::low:
      return "low";
    case BeakerPriority::normal:
      return "normal";
    case BeakerPriority::high:
      return "high";
    case BeakerPriority::urgent:
      return "urgent";
    case BeakerPriority::immediate:
      return "immediate";
  }
  return "?";
}

PreflightLevel level_of(std::string_view word) {
  for (const auto level : {PreflightLevel::quick, PreflightLevel::deep}) {
    if (word == name_of(level)) return level;
  }
  return PreflightLevel::standard;
}

}  // namespace nlaunch
