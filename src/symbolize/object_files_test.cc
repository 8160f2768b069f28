// Opening files of others and telling objects apart.
#include "symbolize/object_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "symbolize/object_table.h"
#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

class OpenInRootTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        shop_.run("mkdir -p root/abs outside && echo inside > root/abs/f && "
                  "ln -s /abs root/lib && ln -s ../../outside root/escape && "
                  "echo secret > outside/f && mkfifo root/fifo && ln -s /abs/f root/link"));
    root_ = Fd(open(shop_.path("root").c_str(), O_PATH | O_DIRECTORY));
  }
  std::string content(const std::string& path, FinalLink link = FinalLink::kFollow) {
    const auto file = open_in_root(root_.get(), path, link);
    return file ? read_all(file->fd.get(), path, 100).value() : "refused";
  }
  Workshop shop_;
  Fd root_;
};

TEST_F(OpenInRootTest, KeepsAbsoluteAndRelativeLinksInside) {
  EXPECT_EQ(content("/abs/f"), "inside\n");
  EXPECT_EQ(content("/lib/f"), "inside\n");
  EXPECT_EQ(content("/escape/f"), "refused");
  EXPECT_EQ(content("/../../../outside/f"), "refused");
  EXPECT_EQ(content("/link"), "inside\n");
  EXPECT_EQ(content("/link", FinalLink::kRefuse), "refused");
}

TEST_F(OpenInRootTest, RefusesWhatIsNoRegularFileWithoutOpeningIt) {
  EXPECT_EQ(content("/fifo"), "refused");
  EXPECT_EQ(content("/abs"), "refused");
  const Fd own(open("/", O_PATH | O_DIRECTORY));
  const auto device = open_in_root(own.get(), "/dev/zero");
  ASSERT_FALSE(device);
  EXPECT_NE(device.error().message.find("not a regular file"), std::string::npos);
}

class ObjectTableTest : public testing::Test {
 protected:
  OpenedFile open_file(const std::string& name) {
    const Fd own(open("/", O_PATH | O_DIRECTORY));
    return std::move(*open_in_root(own.get(), shop_.path(name)));
  }
  ObjectId add(ObjectTable& table, const std::string& name) {
    return table.add_file(open_file(name), shop_.path(name), Roots::kOwn);
  }
  void build(const std::string& name, const std::string& prefix, const std::string& flags = "") {
    shop_.write(name + ".c", speaking_program(prefix));
    ASSERT_TRUE(shop_.run("gcc -O1 -no-pie " + flags + " -o " + name + " " + name + ".c"));
  }
  Workshop shop_;
  FileWorker worker_;
  Roots roots_;
};

TEST_F(ObjectTableTest, TellsFilesApartByBuildIdAndSize) {
  build("a", "a_", "-Wl,--build-id=0x1234");
  build("b", "longer_b_", "-Wl,--build-id=0x1234");  // a build that fixes its id
  build("n", "n_", "-Wl,--build-id=none");
  build("m", "m_", "-Wl,--build-id=none");
  ASSERT_TRUE(shop_.run("cp a copy && ln a link"));
  ObjectTable table({}, roots_, worker_);
  const ObjectId a = add(table, "a");
  EXPECT_EQ(add(table, "copy"), a);  // the same build in another place
  EXPECT_EQ(add(table, "link"), a);
  EXPECT_NE(add(table, "b"), a);
  EXPECT_NE(add(table, "n"), add(table, "m"));
  const auto name = [&](ObjectId object, const std::string& file, const std::string& symbol) {
    const auto match = table.symbols(object)->find(shop_.address_of(file, symbol));
    return match ? std::string(match->name) : "";
  };
  EXPECT_EQ(name(a, "a", "a_inner"), "a_inner");
  EXPECT_EQ(name(add(table, "b"), "b", "longer_b_inner"), "longer_b_inner");
}

TEST_F(ObjectTableTest, SeesAFileThatWasRewrittenInPlaceAsAnother) {
  build("a", "a_");
  build("b", "bb_");
  ObjectTable table({}, roots_, worker_);
  const ObjectId first = add(table, "a");
  ASSERT_TRUE(shop_.run("cat b > a"));
  EXPECT_NE(add(table, "a"), first);
}

TEST_F(ObjectTableTest, ReadsEachSymbolTableOnceAndStaysWithinItsBudget) {
  for (const std::string name : {"a", "b", "c"}) build(name, name + name + name + "_");
  Options options;
  ObjectTable table(options, roots_, worker_);
  const ObjectId a = add(table, "a"), b = add(table, "b"), c = add(table, "c");
  for (int round = 0; round < 3; ++round)
    for (const ObjectId object : {a, b, c}) ASSERT_NE(table.symbols(object), nullptr);
  EXPECT_EQ(table.tables_loaded(), 3u);

  options.symbol_bytes_max = 5 * table.symbol_bytes();  // collecting needs more than holding
  ObjectTable roomy(options, roots_, worker_);
  options.symbol_bytes_max = table.symbol_bytes() * 2 / 3 + 4000;
  ObjectTable tight(options, roots_, worker_);
  for (const std::string name : {"a", "b", "c"}) {
    EXPECT_NE(roomy.symbols(add(roomy, name)), nullptr);
    tight.symbols(add(tight, name));
    EXPECT_LE(tight.symbol_bytes(), options.symbol_bytes_max);
  }
}

// What is wanted once is read for that; what is wanted again and again is read whole.
TEST_F(ObjectTableTest, ReadsATableForTheAddressesThatAreWanted) {
  build("a", "a_");
  const uint64_t inner = shop_.address_of("a", "a_inner"), outer = shop_.address_of("a", "a_outer");
  ObjectTable whole({}, roots_, worker_), table({}, roots_, worker_);
  const ObjectId a = add(table, "a");
  const size_t all = whole.symbols(add(whole, "a"))->size();
  const auto name_at = [&](uint64_t address) {
    table.want(a, address);
    const auto match = table.symbols(a)->find(address);
    return match ? std::string(match->name) : "";
  };
  EXPECT_EQ(name_at(inner + 1), "a_inner");
  EXPECT_EQ(table.symbols(a)->size(), 1u);
  EXPECT_EQ(name_at(outer), "a_outer");
  EXPECT_EQ(table.symbols(a)->size(), 2u) << "those before are not forgotten";
  EXPECT_EQ(table.tables_loaded(), 2u);
  EXPECT_EQ(name_at(shop_.address_of("a", "main")), "main");
  EXPECT_LT(table.symbols(a)->size(), all);
  EXPECT_EQ(name_at(shop_.address_of("a", "_start")), "_start");
  EXPECT_EQ(table.symbols(a)->size(), all);
  for (uint64_t i = 1; i < 4; ++i) EXPECT_EQ(name_at(inner + i), "a_inner");
  EXPECT_EQ(table.tables_loaded(), 4u);
}

TEST_F(ObjectTableTest, KeepsTheNamesThatItHasWhenTheFileIsGone) {
  build("a", "a_");
  const uint64_t inner = shop_.address_of("a", "a_inner");
  ObjectTable table({}, roots_, worker_);
  const ObjectId a = add(table, "a");
  table.want(a, inner);
  ASSERT_TRUE(table.symbols(a)->find(inner));
  ASSERT_TRUE(shop_.run("truncate -s 100 a"));
  table.want(a, shop_.address_of("a", "a_outer"));
  ASSERT_NE(table.symbols(a), nullptr);
  EXPECT_TRUE(table.symbols(a)->find(inner));
}

TEST_F(ObjectTableTest, SurvivesAFileThatIsCutShortAfterItWasOpened) {
  build("a", "a_");
  ObjectTable table({}, roots_, worker_);
  const ObjectId a = add(table, "a");
  ASSERT_TRUE(shop_.run("truncate -s 5000 a"));
  EXPECT_EQ(table.symbols(a), nullptr);
  EXPECT_FALSE(table.excuse(a).reason.empty());
}

TEST_F(ObjectTableTest, SaysWhyAFileGivesNoNames) {
  shop_.write("text", "no program");
  ObjectTable table({}, roots_, worker_);
  const ObjectId text = add(table, "text");
  EXPECT_EQ(table.symbols(text), nullptr);
  EXPECT_EQ(table.excuse(text).reason, "not an ELF file");
  EXPECT_EQ(table.info(0).path, "[unknown]");
  EXPECT_EQ(table.symbols(0), nullptr);
}

}  // namespace
}  // namespace dwell::symbolize
