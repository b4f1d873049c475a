#pragma once
#include <elf.h>

#include <string>
#include <string_view>

namespace nlaunch::shell {

#if defined(__aarch64__)
inline constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#elif defined(__x86_64__)
inline constexpr Elf64_Half kOwnMachine = EM_X86_64;
#else
inline constexpr Elf64_Half kOwnMachine = EM_NONE;
#endif

/// The content of an executable for Linux that prints `text` and exits with `code` (0 to 255). It has no C
/// library and no loader: a script starts hundreds of programs, and under ptrace a shell takes 5 ms to start.
/// Empty for any machine other than x86-64 and AArch64.
std::string tiny_program(std::string_view text, int code, Elf64_Half machine = kOwnMachine);

}  // namespace nlaunch::shell
