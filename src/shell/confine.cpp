#include "shell/confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "sys/files.h"

namespace nlaunch::shell {
namespace {

enum class Last { followed, kept };  // a link in the last component of a path

constexpr WatchedCall path_call(int number, int folder, int path, Access access, Last last = Last::followed) {
  return {.number = number,
          .about = About::path,
          .path = {folder, path, access},
          .follows = last == Last::followed};
}

constexpr WatchedCall at_call(int number, Access access, int flags) {
  return {.number = number, .about = About::path, .path = {0, 1, access}, .at_flags = flags};
}

constexpr WatchedCall open_call(int number, int folder, int path, int flags) {
  return {.number = number, .about = About::path, .path = {folder, path, Access::read}, .open_flags = flags};
}

constexpr WatchedCall two_paths(int number, PathArgument from, PathArgument to) {
  return {.number = number, .about = About::path, .path = from, .second = to, .follows = false};
}

constexpr WatchedCall other_call(int number, About about) {
  return {.number = number, .about = about};
}

const std::vector<WatchedCall>& watched() {
  using enum Access;
  static const std::vector<WatchedCall> kCalls{
      {.number = SCMP_SYS(execve), .about = About::start, .path = {-1, 0, read}},
      {.number = SCMP_SYS(execveat), .about = About::start, .path = {0, 1, read}},
      open_call(SCMP_SYS(open), -1, 0, 1),
      open_call(SCMP_SYS(openat), 0, 1, 2),
      path_call(SCMP_SYS(creat), -1, 0, replace),
      path_call(SCMP_SYS(stat), -1, 0, read),
      path_call(SCMP_SYS(lstat), -1, 0, read, Last::kept),
      at_call(SCMP_SYS(newfstatat), read, 3),
      at_call(SCMP_SYS(statx), read, 2),
      path_call(SCMP_SYS(statfs), -1, 0, read),
      path_call(SCMP_SYS(access), -1, 0, read),
      path_call(SCMP_SYS(faccessat), 0, 1, read),
      at_call(SCMP_SYS(faccessat2), read, 3),
      {.number = SCMP_SYS(readlink), .about = About::read_link, .path = {-1, 0, read}},
      {.number = SCMP_SYS(readlinkat), .about = About::read_link, .path = {0, 1, read}},
      other_call(SCMP_SYS(getcwd), About::folder),
      {.number = SCMP_SYS(chdir), .about = About::path, .path = {-1, 0, read}, .goes_there = true},
      path_call(SCMP_SYS(mkdir), -1, 0, create, Last::kept),
      path_call(SCMP_SYS(mkdirat), 0, 1, create, Last::kept),
      path_call(SCMP_SYS(mknod), -1, 0, create, Last::kept),
      path_call(SCMP_SYS(mknodat), 0, 1, create, Last::kept),
      {.number = SCMP_SYS(symlink), .about = About::link, .path = {-1, 1, create}, .follows = false},
      {.number = SCMP_SYS(symlinkat), .about = About::link, .path = {1, 2, create}, .follows = false},
      path_call(SCMP_SYS(rmdir), -1, 0, remove, Last::kept),
      path_call(SCMP_SYS(unlink), -1, 0, remove, Last::kept),
      path_call(SCMP_SYS(unlinkat), 0, 1, remove, Last::kept),
      path_call(SCMP_SYS(chmod), -1, 0, change),
      path_call(SCMP_SYS(fchmodat), 0, 1, change),
      path_call(SCMP_SYS(chown), -1, 0, change),
      path_call(SCMP_SYS(lchown), -1, 0, change, Last::kept),
      at_call(SCMP_SYS(fchownat), change, 4),
      path_call(SCMP_SYS(truncate), -1, 0, change),
      path_call(SCMP_SYS(utime), -1, 0, change),
      path_call(SCMP_SYS(utimes), -1, 0, change),
      path_call(SCMP_SYS(futimesat), 0, 1, change),
      at_call(SCMP_SYS(utimensat), change, 3),
      two_paths(SCMP_SYS(rename), {-1, 0, change}, {-1, 1, replace}),
      two_paths(SCMP_SYS(renameat), {0, 1, change}, {2, 3, replace}),
      two_paths(SCMP_SYS(renameat2), {0, 1, change}, {2, 3, replace}),
      two_paths(SCMP_SYS(link), {-1, 0, change}, {-1, 1, create}),
      two_paths(SCMP_SYS(linkat), {0, 1, change}, {2, 3, create}),
      // A descriptor opened for reading can still change a file's permissions.
      other_call(SCMP_SYS(fchmod), About::rights),
      other_call(SCMP_SYS(fchown), About::rights),
      other_call(SCMP_SYS(mmap), About::code),
      other_call(SCMP_SYS(kill), About::signal),
      other_call(SCMP_SYS(tkill), About::signal),
      other_call(SCMP_SYS(tgkill), About::signal),
      other_call(SCMP_SYS(rt_sigqueueinfo), About::signal),
      other_call(SCMP_SYS(prlimit64), About::limit),
      other_call(SCMP_SYS(setrlimit), About::pretend),
      other_call(SCMP_SYS(socket), About::socket),
      other_call(SCMP_SYS(connect), About::connection),
      other_call(SCMP_SYS(clock_gettime), About::clock),
      other_call(SCMP_SYS(gettimeofday), About::clock),
      other_call(SCMP_SYS(time), About::clock),
      other_call(SCMP_SYS(setxattr), About::pretend),
      other_call(SCMP_SYS(lsetxattr), About::pretend),
      other_call(SCMP_SYS(fsetxattr), About::pretend),
      other_call(SCMP_SYS(removexattr), About::pretend),
      other_call(SCMP_SYS(lremovexattr), About::pretend),
      other_call(SCMP_SYS(fremovexattr), About::pretend),
  };
  return kCalls;
}

/// Calls that reach other processes, the network or the machine. Without openat2 and io_uring, programs fall
/// back to watched calls.
constexpr std::array kRefused{
    // the network
    SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(sendto),
    SCMP_SYS(sendmsg), SCMP_SYS(sendmmsg),
    // other processes
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise),
    SCMP_SYS(pidfd_open), SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_send_signal), SCMP_SYS(rt_tgsigqueueinfo),
    SCMP_SYS(kcmp), SCMP_SYS(setpriority), SCMP_SYS(ioprio_set), SCMP_SYS(sched_setaffinity),
    SCMP_SYS(sched_setattr), SCMP_SYS(sched_setparam), SCMP_SYS(sched_setscheduler), SCMP_SYS(migrate_pages),
    SCMP_SYS(move_pages), SCMP_SYS(shmget), SCMP_SYS(shmat), SCMP_SYS(shmctl), SCMP_SYS(semget),
    SCMP_SYS(semctl), SCMP_SYS(semop), SCMP_SYS(msgget), SCMP_SYS(msgctl), SCMP_SYS(msgsnd),
    SCMP_SYS(mq_open), SCMP_SYS(mq_unlink),
    // file systems, and ways around the watched calls
    SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(setns),
    SCMP_SYS(unshare), SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount), SCMP_SYS(fspick), SCMP_SYS(mount_setattr), SCMP_SYS(open_by_handle_at),
    SCMP_SYS(openat2), SCMP_SYS(io_uring_setup), SCMP_SYS(fanotify_init), SCMP_SYS(quotactl),
    // the machine
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd), SCMP_SYS(keyctl), SCMP_SYS(add_key),
    SCMP_SYS(request_key), SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(swapoff),
    SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime), SCMP_SYS(adjtimex), SCMP_SYS(acct), SCMP_SYS(syslog), SCMP_SYS(vhangup),
    SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(seccomp), SCMP_SYS(personality)};

/// A second line of defense: what the tracer lets through by mistake has no effect.
void restrict_writes(const std::filesystem::path& folder, const std::set<std::filesystem::path>& files) {
  landlock_ruleset_attr rules{};
  rules.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                            LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                            LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                            LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                            LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
  const auto ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0));
  if (ruleset < 0) return;
  const auto allow = [&](const char* path, std::uint64_t access) {
    landlock_path_beneath_attr beneath{};
    beneath.allowed_access = access;
    beneath.parent_fd = ::open(path, O_PATH | O_CLOEXEC);
    if (beneath.parent_fd < 0) return;
    ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    ::close(beneath.parent_fd);
  };
  allow(folder.c_str(), rules.handled_access_fs);
  for (const auto& file : files) allow(file.c_str(), LANDLOCK_ACCESS_FS_WRITE_FILE);
  for (const auto* device : {"/dev/null", "/dev/zero", "/dev/full"})
    allow(device, LANDLOCK_ACCESS_FS_WRITE_FILE);
  ::syscall(SYS_landlock_restrict_self, ruleset, 0);
  ::close(ruleset);
}

/// Root keeps the capability to read.
void drop_capabilities() {
  constexpr int kLast = 63;
  constexpr int kReadSearch = 2;  // CAP_DAC_READ_SEARCH
  for (int capability = 0; capability <= kLast; ++capability) {
    if (capability != kReadSearch) ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  struct {
    std::uint32_t version = 0x20080522;  // _LINUX_CAPABILITY_VERSION_3
    int pid = 0;
  } header;
  struct {
    std::uint32_t effective, permitted, inheritable;
  } sets[2] = {{1U << kReadSearch, 1U << kReadSearch, 0}, {0, 0, 0}};
  if (::syscall(SYS_capset, &header, sets) != 0) {
    sets[0] = {0, 0, 0};
    ::syscall(SYS_capset, &header, sets);
  }
}

void limit_resources() {
  const auto limit = [](auto resource, rlim_t most) {
    const rlimit value{most, most};
    ::setrlimit(resource, &value);
  };
  limit(RLIMIT_AS, rlim_t{1} << 30U);
  limit(RLIMIT_FSIZE, rlim_t{64} << 20U);
  limit(RLIMIT_CORE, 0);
}

}  // namespace

/// System calls newer than those known here (Linux 6.8), and some older ones, appear not to exist, so
/// programs fall back to older ones. By number, which is the same on all architectures from 424 on.
constexpr int kFirstUnknown = 451;
constexpr int kLastUnknown = 560;
constexpr std::array kNotThere{443 /* quotactl_fd */, 448 /* process_mrelease */};

Result<std::vector<sock_filter>> make_filter() {
  constexpr std::uint16_t kAsk = 1;
  const std::unique_ptr<void, decltype(&::seccomp_release)> filter(::seccomp_init(SCMP_ACT_ALLOW),
                                                                   ::seccomp_release);
  int failed = filter == nullptr ? ENOMEM : 0;
  if (failed == 0) ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree
  const auto add = [&](std::uint32_t action, int number, std::span<const scmp_arg_cmp> where = {}) {
    if (number >= 0 && failed == 0) {
      failed = -::seccomp_rule_add_array(filter.get(), action, number, static_cast<unsigned>(where.size()),
                                         where.data());
    }
  };
  const scmp_arg_cmp executable[] = {
      {.arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = PROT_EXEC, .datum_b = PROT_EXEC}};
  for (const auto& call : watched()) {
    if (call.about == About::code) {
      add(SCMP_ACT_TRACE(kAsk), call.number, executable);
    } else {
      add(SCMP_ACT_TRACE(kAsk), call.number);
    }
  }
  for (const int number : kRefused) add(SCMP_ACT_ERRNO(EPERM), number);
  for (const int number : kNotThere) add(SCMP_ACT_ERRNO(ENOSYS), number);
  for (int number = kFirstUnknown; number <= kLastUnknown; ++number) add(SCMP_ACT_ERRNO(ENOSYS), number);
  const sys::UniqueFd file(::memfd_create("filter", MFD_CLOEXEC));
  if (failed == 0 && !file) failed = errno;
  if (failed == 0) failed = -::seccomp_export_bpf(filter.get(), file.get());
  const auto size = failed == 0 ? ::lseek(file.get(), 0, SEEK_CUR) : 0;
  std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (failed == 0 && ::pread(file.get(), program.data(), static_cast<std::size_t>(size), 0) != size)
    failed = EIO;
  if (failed != 0)
    return failure("shell.filter", "cannot create a seccomp filter: {}", std::strerror(failed));
  return program;
}

const WatchedCall* watched_call(int number) {
  const auto& all = watched();
  const auto found = std::ranges::find(all, number, &WatchedCall::number);
  return number < 0 || found == all.end() ? nullptr : &*found;
}

int confine_self(const std::vector<sock_filter>& filter, const std::filesystem::path& folder,
                 const std::set<std::filesystem::path>& files) {
  limit_resources();
  if (::geteuid() == 0) drop_capabilities();
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  restrict_writes(folder, files);
  const sock_fprog program{static_cast<unsigned short>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : errno;
}

}  // namespace nlaunch::shell
