// Compares printed trees with the lines that a reader of YAML expects.
#include "tools/deploy/yaml.h"

#include <gtest/gtest.h>

#include <string>

namespace hdps {
namespace {

TEST(Yaml, NestsMapsAndLists) {
  const Yaml tree =
      Yaml::Map({{"kind", "Job"},
                 {"empty", Yaml::Map()},
                 {"none", Yaml::List()},
                 {"spec", Yaml::Map({{"count", 3}, {"on", true}})},
                 {"list", Yaml::List({"a", Yaml::Map({{"name", "b"}, {"c", Yaml::List({1, 2})}}),
                                      Yaml::Map({{"d", Yaml::Map({{"e", "f"}})}})})}});
  EXPECT_EQ(tree.Print(),
            "kind: Job\n"
            "empty: {}\n"
            "none: []\n"
            "spec:\n"
            "  count: 3\n"
            "  \"on\": true\n"
            "list:\n"
            "  - a\n"
            "  - name: b\n"
            "    c:\n"
            "      - 1\n"
            "      - 2\n"
            "  - d:\n"
            "      e: f\n");
}

TEST(Yaml, QuotesWhatAReaderWouldTakeForSomethingElse) {
  for (const char* plain : {"a", "/data/out", "apps/v1", "x.y-z_1", "jobset.x-k8s.io/v1alpha2"}) {
    EXPECT_EQ(Yaml(plain).Print(), std::string(" ") + plain + "\n");
  }
  for (const char* quoted :
       {"",     "1",   "0x1f",       "1e3",      "-",    "-a",   ".5",
        ".inf", "~",   "null",       "Null",     "true", "YES",  "no",
        "on",   "Off", "y",          "N",        "a: b", "a #b", "tcp://$(POD_IP):8119",
        "*",    "&a",  "!a",         "%a",       "@a",   "`a",   "{a",
        "[a",   "a,b", "2024-01-01", "12:30:45", " a",   "a ",   "a b",
        "<<",   "="}) {
    EXPECT_EQ(Yaml(quoted).Print(), std::string(" \"") + quoted + "\"\n");
  }
  EXPECT_EQ(Yaml("a\"b\\c\td\x01").Print(), " \"a\\\"b\\\\c\\td\\x01\"\n");
}

TEST(Yaml, LinesAreABlock) {
  EXPECT_EQ(Yaml::Map({{"job.json", "{\n  \"a\": 1\n\n}\n"}}).Print(),
            "job.json: |\n  {\n    \"a\": 1\n\n  }\n");
  // Where a block would change the text, it is quoted.
  for (const char* text : {"a\nb", " a\nb\n", "\na\n", "a\n\n", "a\rb\n", "\xc3\xa4\n"}) {
    EXPECT_EQ(Yaml(text).Print().substr(0, 2), " \"") << text;
  }
}

}  // namespace
}  // namespace hdps
