// Stream bytes that are produced when they are read.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "formats/common/lazy_bytes.h"

namespace ptkit::formats {
namespace {

class Counted final : public LazyBytes {
 public:
  Counted() : LazyBytes({0, 10, 15}, 30) {}
  std::vector<std::size_t> made;

  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override {
    last = std::make_shared<Counted>();
    return buffer_of(last);
  }
  mutable std::shared_ptr<Counted> last;

 private:
  void produce(std::size_t part, std::span<std::uint8_t> out) noexcept override {
    made.push_back(part);
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>('a' + part);
  }
};

TEST(LazyBytes, ProducesOnlyPartsThatAreRead) {
  const auto data = std::make_shared<Counted>();
  const auto buffer = trace::TraceBuffer::from_source(data->bytes(), data);
  EXPECT_EQ(buffer.size(), 30U);
  EXPECT_TRUE(data->made.empty());
  EXPECT_EQ(buffer.part(12, 13)[0], 'b');
  EXPECT_EQ(data->made, std::vector<std::size_t>{1});
  EXPECT_EQ(buffer.part(14, 16)[1], 'c');
  EXPECT_EQ(data->made, (std::vector<std::size_t>{1, 2}));
  const base::Bytes all = buffer.bytes();
  EXPECT_EQ(data->made, (std::vector<std::size_t>{1, 2, 0}));
  EXPECT_EQ(std::string(all.begin(), all.end()), std::string(10, 'a') + "bbbbb" + std::string(15, 'c'));
}

TEST(LazyBytes, ProducesForgottenPartsAgain) {
  const auto data = std::make_shared<Counted>();
  const auto shared = trace::TraceBuffer::from_source(data->bytes(), data);
  EXPECT_EQ(shared.bytes()[29], 'c');
  shared.forget_before(30);
  EXPECT_EQ(shared.bytes()[0], 'a');
  EXPECT_EQ(data->made.size(), 3U);  // other users may read it
  const auto own = shared.again();
  const std::vector<std::size_t>& made = data->last->made;
  EXPECT_EQ(own.size(), 30U);
  EXPECT_NE(own.part(0, 1).data(), shared.part(0, 1).data());
  EXPECT_EQ(made, std::vector<std::size_t>{0});
  own.forget_before(9);
  EXPECT_EQ(own.part(0, 1)[0], 'a');
  EXPECT_EQ(made.size(), 1U);  // a part that is only partly forgotten stays
  EXPECT_EQ(own.part(14, 16)[1], 'c');
  own.forget_before(15);
  EXPECT_EQ(own.part(15, 30)[0], 'c');
  EXPECT_EQ(made, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(own.part(9, 11)[1], 'b');
  EXPECT_EQ(made, (std::vector<std::size_t>{0, 1, 2, 0, 1}));
  own.forget_before(30);
  const base::Bytes all = own.bytes();
  EXPECT_EQ(std::string(all.begin(), all.end()), std::string(10, 'a') + "bbbbb" + std::string(15, 'c'));
  EXPECT_EQ(made.size(), 8U);
  EXPECT_EQ(data->made.size(), 3U);
}

// Memory is released in whole pages; bytes of later parts stay.
TEST(LazyBytes, ReleasesMemoryOfForgottenParts) {
  constexpr std::size_t kPart = 10'000;
  std::vector<trace::TraceBuffer> parts;
  for (std::size_t i = 0; i < 100; ++i)
    parts.push_back(
        trace::TraceBuffer::from_vector(std::vector<std::uint8_t>(kPart, static_cast<std::uint8_t>(i + 1))));
  const auto data = join_buffers(std::move(parts)).value().again();
  for (std::size_t i = 0; i < 99; ++i) {
    const base::Bytes two = data.part(i * kPart, (i + 2) * kPart);
    data.forget_before((i + 1) * kPart);
    EXPECT_EQ(i == 0 ? 0 : *(two.data() - kPart), 0) << i;  // a page without bytes of later parts
    ASSERT_TRUE(std::all_of(two.begin() + kPart, two.end(), [i](auto byte) { return byte == i + 2; })) << i;
  }
  EXPECT_EQ(data.part(5, 6)[0], 1);
}

// Parts of 10,000 bytes; part i consists of bytes i + 1.
class OnDisk final : public LazyBytes {
 public:
  static constexpr std::size_t kPart = 10'000;
  explicit OnDisk(std::size_t parts, std::shared_ptr<base::UnpackedFile> file)
      : LazyBytes(begins_of(parts), parts * kPart, std::move(file)) {}
  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override { return std::nullopt; }
  // Whether all parts are right.
  [[nodiscard]] static bool holds(base::Bytes all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] != i / kPart + 1) return false;
    }
    return true;
  }

 private:
  static std::vector<std::size_t> begins_of(std::size_t parts) {
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < parts; ++i) begins.push_back(i * kPart);
    return begins;
  }
  void produce(std::size_t part, std::span<std::uint8_t> out) noexcept override {
    std::fill(out.begin(), out.end(), static_cast<std::uint8_t>(part + 1));
  }
};

// Bytes of anonymous memory in the mappings of `bytes`, and whether a file without a name is mapped there.
struct Mapped {
  std::size_t anonymous = 0;
  bool unnamed_file = false;
};
Mapped mapped(base::Bytes bytes) {
  Mapped found;
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
      inside = begin < at + bytes.size() && at < end;
      found.unnamed_file = found.unnamed_file || (inside && line.ends_with(" (deleted)"));
    } else if (inside && line.starts_with("Anonymous:")) {
      found.anonymous += std::stoul(line.substr(10)) * 1024;
    }
  }
  return found;
}

TEST(LazyBytes, WritesPartsToUnnamedFile) {
  const auto file = base::UnpackedFile::create();
  const auto first = std::make_shared<OnDisk>(100, file);
  const auto second = std::make_shared<OnDisk>(50, file);
  const auto some = trace::TraceBuffer::from_source(first->bytes(), first);
  const auto others = trace::TraceBuffer::from_source(second->bytes(), second);
  EXPECT_FALSE(some.prepare());
  EXPECT_EQ(others.part(15'000, 15'001)[0], 2);
  EXPECT_EQ(others.part(9'999, 10'001)[0], 1);
  EXPECT_TRUE(OnDisk::holds(some.bytes()));
  EXPECT_TRUE(OnDisk::holds(others.bytes()));
  for (const base::Bytes bytes : {some.bytes(), others.bytes()}) {
    EXPECT_TRUE(mapped(bytes).unnamed_file);
    EXPECT_EQ(mapped(bytes).anonymous, 0U);
  }
}

TEST(LazyBytes, TakesMemoryIfDiskHasNoRoom) {
  const char* const before = std::getenv("TMPDIR");
  const std::string folder = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/does/not/exist", 1);
  const auto small = std::make_shared<OnDisk>(100, base::UnpackedFile::create());
  EXPECT_FALSE(small->prepare());
  small->need(0, small->bytes().size());
  EXPECT_TRUE(OnDisk::holds(small->bytes()));
  EXPECT_FALSE(mapped(small->bytes()).unnamed_file);

  class Large final : public LazyBytes {  // more than any memory
   public:
    explicit Large() : LazyBytes({0}, std::size_t{1} << 44U, base::UnpackedFile::create()) {}
    [[nodiscard]] std::optional<trace::TraceBuffer> again() const override { return std::nullopt; }
    void produce(std::size_t, std::span<std::uint8_t>) noexcept override {}
  } large;
  ASSERT_TRUE(large.good());
  const auto failure = large.prepare();
  ASSERT_TRUE(failure);
  EXPECT_TRUE(failure->detail.starts_with("the trace takes 17592186044416 bytes unpacked; of memory "))
      << failure->detail;
  EXPECT_TRUE(failure->detail.ends_with(
      ", and /does/not/exist: cannot create a file: No such file or directory; set TMPDIR to a folder on a "
      "disk with room"))
      << failure->detail;
  if (folder.empty()) {
    ::unsetenv("TMPDIR");
  } else {
    ::setenv("TMPDIR", folder.c_str(), 1);
  }
}

// A disk that fails later.
TEST(LazyBytes, KeepsPartsInMemoryThatCannotBeWritten) {
  const auto data = std::make_shared<OnDisk>(100, base::UnpackedFile::create());
  EXPECT_FALSE(data->prepare());
  data->need(500'000, 510'001);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  data->need(0, 20'000);
  data->need(490'000, 600'000);  // shares pages with parts in the file
  data->need(0, data->bytes().size());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  static_cast<void>(std::signal(SIGXFSZ, handler));
  EXPECT_TRUE(OnDisk::holds(data->bytes()));
  EXPECT_TRUE(mapped(data->bytes()).unnamed_file);
  EXPECT_GT(mapped(data->bytes()).anonymous, 500'000U);
}

TEST(LazyBytes, JoinsBuffers) {
  const auto part = [](const std::string& text) {
    return trace::TraceBuffer::from_vector({text.begin(), text.end()});
  };
  const auto joined = join_buffers({part("one"), part(""), part("two"), part("three")});
  ASSERT_TRUE(joined.ok());
  const base::Bytes all = joined.value().bytes();
  EXPECT_EQ(std::string(all.begin(), all.end()), "onetwothree");
  const auto only = part("one");
  EXPECT_EQ(join_buffers({only}).value().bytes().data(), only.bytes().data());  // not copied
  EXPECT_EQ(join_buffers({}).value().size(), 0U);
}

}  // namespace
}  // namespace ptkit::formats
