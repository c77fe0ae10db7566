// Tests what the page is made of: its paths, its size, and its tables for browsers without scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/page/page_assets.h"
#include "scheduler/page/page_paths.h"
#include "scheduler/page/page_tables.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

HttpAnswer Ask(const std::vector<HttpPath>& paths, const std::string& path) {
  for (const HttpPath& one : paths) {
    if (one.path == path) return one.answer({path, [](std::string_view) { return std::string(); }});
  }
  HttpAnswer none;
  none.status = 404;
  return none;
}

TEST(PagePathsTest, ThePageIsSmallAndEveryFileThatItNamesIsServed) {
  const std::vector<HttpPath> paths = PagePaths([] { return std::string("{}"); });
  std::vector<std::string> names;
  size_t bytes = 0;
  for (const HttpPath& path : paths) {
    names.push_back(path.path);
    EXPECT_FALSE(path.open) << path.path << " needs the token";
    const HttpAnswer answer = Ask(paths, path.path);
    EXPECT_EQ(answer.status, 200);
    if (path.path != "/tables") bytes += answer.body->size();
  }
  EXPECT_THAT(names,
              ElementsAre("/", "/page.css", "/dygraphs.js", "/page.js", "/icon.svg", "/tables"));
  const std::string& page = *Ask(paths, "/").body;
  for (const char* named : {"page.css", "dygraphs.js", "page.js", "icon.svg", "url=tables"}) {
    EXPECT_THAT(page, HasSubstr(named));
  }
  EXPECT_LE(bytes, 300u << 10);
  EXPECT_LE(kPageScript.size(), 20u << 10);
  printf("figure: the page has %zu bytes, %zu of them script of our own\n", bytes,
         kPageScript.size());
}

TEST(PagePathsTest, OurScriptsMakeNoMarkup) {
  for (const std::string_view script : {kPageScript, kReportScript}) {
    for (const char* none : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                             "eval(", "new Function", "http:"}) {
      EXPECT_THAT(std::string(script), Not(HasSubstr(none)));
    }
  }
  for (const char* none : {"<style", "style=", "onload=", "<script>"}) {
    EXPECT_THAT(std::string(kPageHtml), Not(HasSubstr(none))) << "the policy forbids it";
  }
  EXPECT_THAT(std::string(kDygraphs), HasSubstr("Permission is hereby granted"));
  EXPECT_THAT(std::string(kDygraphs), Not(HasSubstr("sourceMappingURL")));
}

TEST(PageTablesTest, ObjectsAndListsOfThemAreTables) {
  const std::string html = TablesOf(
      R"({"schema":1,"health":{"sentence":"a < b","members":{"servers":{"alive":1}},"missing":null},)"
      R"("rows":{"tables":[{"table":"wide","rows":{"memory":3,"disk":0}},)"
      R"({"table":"x","hit":0.5}]},)"
      R"("training":{"curves":[{"points":[[1,2],[2,2],[3,2],[4,2],[5,2],[6,2],[7,2],[8,2],)"
      R"([9,2],[10,2]]}]}})");
  for (const char* part :
       {"<h2>health</h2>", "<tr><td>sentence</td><td>a &lt; b</td></tr>",
        "<tr><td>members</td><td>servers (alive 1)</td></tr>", "<tr><td>missing</td><td></td></tr>",
        "<h3>tables</h3>", "<tr><th>table</th><th>rows</th><th>hit</th></tr>",
        "<tr><td>wide</td><td>memory 3, disk 0</td><td></td></tr>",
        "<tr><td>x</td><td></td><td>0.5</td></tr>", "2 more, (3, 2), (4, 2)", "(10, 2)</td>"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, Not(HasSubstr("(2, 2)")));
  EXPECT_EQ(Escaped("a<b>\"'&"), "a&lt;b&gt;&quot;&#39;&amp;");
}

TEST(PageTablesTest, WhatIsNoDocumentIsSaidAndNothingIsMarkup) {
  for (const char* none : {"", "[", "[1]", "\"\xff\""}) {
    EXPECT_THAT(TablesOf(none), HasSubstr("nothing to show yet"));
  }
  const std::string evil = R"("<script>x</script>")";
  const std::string html =
      TablesPage("{" + evil + ":{" + evil + ":[{" + evil + ":[" + evil + "]}]}}");
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("runs no script"));
}

}  // namespace
}  // namespace hdps
