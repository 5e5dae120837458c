// Redacted bundles: no chunk holds private text.
#include <gtest/gtest.h>

#include "sample.h"

namespace ptkit::formats {
namespace {

using test::Scratch;
using test::unpacked;

constexpr const char* kSecrets[] = {"/home/alice", "alice", "secret-thread", "--password",
                                    "hunter2",     "box17", "private.dll"};

const std::vector<std::uint8_t> kImports =
    ptkit::test::stored_imports({"private.dll"}, {{0x2000, 1, "CreateFileW"}});
const std::vector<std::uint8_t> kFunctions = ptkit::test::stored_functions({{0x40, 0x4c}});

// Writes a recording that has a secret in every text.
void record(PtkWriter& writer) {
  RecordingInfo info;
  info.backend = "step";
  info.command = {"/home/alice/a.out", "--password", "hunter2"};
  info.machine = "Linux 6.1.0 x86_64, Some Processor, /home/alice/qemu";
  info.begin_ns = 1;
  writer.info(info);
  writer.configuration({});
  writer.metadata(R"({"host": "box17", "folder": ["/home/alice"], "more": {"user": "alice"}, "laps": 3})");
  writer.warning("/home/alice/truth: the log could not be written.");
  writer.warning("3 processes were not followed.");
  trace::Stream stream;
  stream.name = "thread 5 (secret-thread)";
  stream.tid = 5;
  writer.stream(0, stream);
  stream.tid = trace::kNoId;
  stream.cpu = 2;
  writer.stream(1, stream);
  stream.cpu = trace::kNoId;
  writer.stream(2, stream);
  writer.file(3, {"/home/alice/a.out", "00ff", {}, {{"main", 0x40, 12}}, kFunctions, kImports});
  writer.file(4, {"[vdso]", "", {}, {}});
  writer.file(5, {"[anon:secret-thread]", "", {}, {}});
  trace::Sideband record;
  for (const auto kind :
       {trace::SidebandKind::PROCESS, trace::SidebandKind::THREAD, trace::SidebandKind::EXEC,
        trace::SidebandKind::MAP, trace::SidebandKind::SIGNAL, trace::SidebandKind::EXIT}) {
    record.kind = kind;
    record.tid = 5;
    record.text = kind == trace::SidebandKind::EXEC ? "/home/alice/b.out" : "secret-thread";
    writer.sideband(record);
  }
  const std::string data = test::small_stream();
  writer.data(0, test::as_bytes(data));
}

void expect_redacted(const std::string& path) {
  const std::string raw = test::read_all(path);
  const std::string text = unpacked(raw);
  for (const char* secret : kSecrets) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret << "\n" << text;
    EXPECT_EQ(raw.find(secret), std::string::npos) << secret;
  }
  const auto opened = open(path, {});
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  const trace::TraceBundle& bundle = opened.value();
  EXPECT_NE(bundle.metadata.find(R"("redacted":true)"), std::string::npos);
  EXPECT_NE(bundle.metadata.find(R"("backend":"step")"), std::string::npos);
  EXPECT_NE(bundle.metadata.find(R"("laps":3)"), std::string::npos);
  EXPECT_NE(bundle.metadata.find(R"("machine":"Linux 6.1.0 x86_64, Some Processor")"), std::string::npos);
  EXPECT_EQ(bundle.streams[0].name, "thread 5");
  EXPECT_EQ(bundle.streams[1].name, "cpu 2");
  EXPECT_EQ(bundle.streams[2].name, "stream 2");
  EXPECT_EQ(bundle.files[0].build_id, "00ff");
  EXPECT_EQ(bundle.files[0].symbols.at(0).name, "main");
  EXPECT_EQ(bundle.files[0].unwind, kFunctions);
  EXPECT_EQ(bundle.files[0].imports, ptkit::test::stored_imports({"module-1"}, {{0x2000, 1, "CreateFileW"}}));
  EXPECT_EQ(bundle.files[1].path, "[vdso]");
  EXPECT_EQ(bundle.sideband.size(), 6U);
  EXPECT_TRUE(warns(bundle, WarningCode::RECORDED, "3 processes were not followed."));
}

TEST(PtkRedact, WritesNoPrivateText) {
  const Scratch scratch;
  auto writer = PtkWriter::create(scratch.at("a.ptk"), {.redact = true});
  ASSERT_TRUE(writer.ok());
  record(writer.value());
  ASSERT_TRUE(writer.value().finish().ok());
  expect_redacted(scratch.at("a.ptk"));
  const auto opened = open(scratch.at("a.ptk"), {});
  EXPECT_EQ(opened.value().files[0].path, "file-3");  // the id that the writer chose
  EXPECT_EQ(opened.value().files[2].path, "file-5");
}

TEST(PtkRedact, RedactsExistingBundles) {
  const Scratch scratch;
  auto writer = PtkWriter::create(scratch.at("plain.ptk"));
  ASSERT_TRUE(writer.ok());
  record(writer.value());
  ASSERT_TRUE(writer.value().finish().ok());
  const std::string text = unpacked(test::read_all(scratch.at("plain.ptk")));
  for (const char* secret : kSecrets) EXPECT_NE(text.find(secret), std::string::npos) << secret;
  const auto opened = open(scratch.at("plain.ptk"), {});
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(save_ptk(opened.value(), scratch.at("redacted.ptk"), {.redact = true}).ok());
  expect_redacted(scratch.at("redacted.ptk"));
  EXPECT_EQ(open(scratch.at("redacted.ptk"), {}).value().files[0].path, "file-0");
}

TEST(PtkRedact, KeepsTheUnfinishedState) {
  const Scratch scratch;
  {
    auto writer = PtkWriter::create(scratch.at("killed.ptk"));
    ASSERT_TRUE(writer.ok());
    record(writer.value());
    writer.value().flush();
  }
  const auto killed = open(scratch.at("killed.ptk"), {});
  ASSERT_TRUE(killed.ok());
  ASSERT_TRUE(save_ptk(killed.value(), scratch.at("redacted.ptk"), {.redact = true}).ok());
  expect_redacted(scratch.at("redacted.ptk"));
  const auto redacted = open(scratch.at("redacted.ptk"), {});
  EXPECT_TRUE(std::ranges::any_of(redacted.value().warnings, [](const trace::Warning& one) {
    return one.arguments.at(0).starts_with("The recording has no end");
  }));
  EXPECT_EQ(redacted.value().warnings.size(),
            killed.value().warnings.size() - 1);  // without the warning that has a path
}

}  // namespace
}  // namespace ptkit::formats
