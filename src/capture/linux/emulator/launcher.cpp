#include "capture/linux/emulator/launcher.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "capture/common/errors.h"
#include "capture/linux/emulator/plugin/program.h"

namespace ptkit::capture {

namespace {

constexpr const char* kQemu = "qemu-x86_64";
// Separators of LD_PRELOAD and of QEMU's options.
constexpr const char* kSeparators = " ,:;$";

// The first executable file of that name in PATH, as for execvp().
base::Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* given = std::getenv("PATH");
  std::string folders = given != nullptr ? given : "/usr/local/bin:/usr/bin:/bin";
  folders += ':';
  int error = ENOENT;
  for (std::size_t at = 0; at < folders.size();) {
    const std::size_t end = folders.find(':', at);
    std::string path = end == at ? "." : folders.substr(at, end - at);
    path += '/' + name;
    at = end + 1;
    plugin::Program program;
    plugin::resolve_program(path.c_str(), program);
    if (program.kind != plugin::ProgramKind::UNAVAILABLE) return path;
    if (program.error == EACCES) error = EACCES;
  }
  return base::Failure{base::Status::IO_ERROR, 0, "cannot run " + name + ": " + std::strerror(error)};
}

base::Result<std::string> find_qemu(const std::string& given) {
  auto found = find_program(given.empty() ? kQemu : given);
  if (found.ok() && ::access(found.value().c_str(), X_OK) == 0) return found;
  return unsupported(
      "there is no program " + (given.empty() ? std::string(kQemu) : given) +
      ", QEMU's user mode emulation for x86-64; install it (Debian, Ubuntu, Fedora: the package "
      "qemu-user), 6.0 or newer and built with plugins");
}

struct SpawnSettings {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  SpawnSettings() {
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_init(&files);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

base::Result<pid_t> spawn(std::vector<std::string> argv, std::vector<std::string> environment,
                          const SpawnSettings& settings) {
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, argv.front().c_str(), &settings.files, &settings.attributes,
                                  pointers(argv).data(), pointers(environment).data());
  if (error == 0) return pid;
  return unsupported("cannot run " + argv.front() + ": " + std::strerror(error));
}

std::vector<std::string> environment_without_loader(std::vector<std::string>* loader) {
  std::vector<std::string> rest;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    if (std::strncmp(*at, "LD_", 3) != 0)
      rest.emplace_back(*at);
    else if (loader != nullptr)
      loader->emplace_back(*at);
  }
  return rest;
}

// A path of the plugin without separators.
base::Result<std::string> plain_path(const std::string& plugin, const std::string& folder) {
  const std::unique_ptr<char, decltype(&std::free)> full(::realpath(plugin.c_str(), nullptr), &std::free);
  if (full == nullptr) return base::Failure{base::Status::IO_ERROR, 0, plugin + ": " + std::strerror(errno)};
  if (std::strpbrk(full.get(), kSeparators) == nullptr) return std::string(full.get());
  std::string link = folder + "/plugin.so";
  if (::symlink(full.get(), link.c_str()) == 0) return link;
  return base::Failure{base::Status::IO_ERROR, 0, link + ": " + std::strerror(errno)};
}

}  // namespace

base::Result<EmulatedProgram> find_emulated(const RecordOptions& options) {
  EmulatedProgram out;
  const std::string& name = options.argv.front();
  auto path = find_program(name);
  if (!path.ok()) return path.failure();
  const auto program = std::make_unique<plugin::Program>();
  plugin::resolve_program(path.value().c_str(), *program);
  if (program->kind == plugin::ProgramKind::UNAVAILABLE) {
    return base::Failure{base::Status::IO_ERROR, 0,
                         "cannot run " + name + ": " + std::strerror(program->error)};
  }
  if (program->kind == plugin::ProgramKind::OTHER) {
    return unsupported(path.value() +
                       ": the emulator runs x86-64 programs, and this is none; the back end \"step\" records "
                       "32-bit x86 programs");
  }
  out.path = program->path;
  // A path must not look like one of QEMU's options.
  if (out.path.front() == '-') out.path.insert(0, "./");
  for (std::size_t i = 0; i < program->words; ++i) out.arguments.emplace_back(program->prefix[i]);
  if (out.arguments.empty()) out.arguments.push_back(name);
  out.arguments.insert(out.arguments.end(), options.argv.begin() + 1, options.argv.end());
  auto qemu = find_qemu(options.qemu);
  if (!qemu.ok()) return qemu.failure();
  out.qemu = std::move(qemu.value());
  out.plugin = options.plugin;
  if (options.plugin.empty() || ::access(options.plugin.c_str(), R_OK) != 0) {
    return unsupported("the emulator's plugin cannot be read at \"" + options.plugin +
                       "\"; it is part of ptkit: install that again");
  }
  return out;
}

std::string qemu_version(const std::string& qemu) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return {};
  const Fd from(pipe[0]);
  Fd to(pipe[1]);
  SpawnSettings settings;
  ::posix_spawn_file_actions_adddup2(&settings.files, to.get(), STDOUT_FILENO);
  const auto pid = spawn({qemu, "--version"}, environment_without_loader(nullptr), settings);
  to = Fd();
  if (!pid.ok()) return {};
  std::string text;
  std::array<char, 512> buffer{};
  for (ssize_t got = 0;
       (got = ::read(from.get(), buffer.data(), buffer.size())) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  while (::waitpid(pid.value(), nullptr, 0) < 0 && errno == EINTR) {
  }
  constexpr std::string_view kBefore = "version ";
  const std::size_t at = text.find(kBefore);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kBefore.size();
  return text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
}

base::Result<Launched> launch_emulated(const EmulatedProgram& program, const std::string& folder,
                                       const std::string& socket, const sigset_t& mask, bool quiet) {
  const auto plugin = plain_path(program.plugin, folder);
  if (!plugin.ok()) return plugin.failure();
  // Variables for the guest's loader must not reach QEMU's loader.
  std::vector<std::string> loader;
  std::vector<std::string> environment = environment_without_loader(&loader);
  environment.push_back("LD_PRELOAD=" + plugin.value());
  std::vector<std::string> argv{program.qemu, "-plugin", "file=" + plugin.value() + ",socket=" + socket};
  bool preloads = false;
  for (const std::string& variable : loader) {
    preloads |= variable.rfind("LD_PRELOAD=", 0) == 0;
    argv.insert(argv.end(), {"-E", variable});
  }
  if (!preloads) argv.insert(argv.end(), {"-U", "LD_PRELOAD"});
  argv.insert(argv.end(), {"-0", program.arguments.front(), program.path});
  argv.insert(argv.end(), program.arguments.begin() + 1, program.arguments.end());

  SpawnSettings settings;
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int number : kDefaultSignals) ::sigaddset(&defaults, number);
  ::posix_spawnattr_setsigdefault(&settings.attributes, &defaults);
  ::posix_spawnattr_setsigmask(&settings.attributes, &mask);
  ::posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  if (quiet) ::posix_spawn_file_actions_addopen(&settings.files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto pid = spawn(std::move(argv), std::move(environment), settings);
  if (!pid.ok()) return pid.failure();
  return Launched{pid.value(), open_process(pid.value())};
}

}  // namespace ptkit::capture
