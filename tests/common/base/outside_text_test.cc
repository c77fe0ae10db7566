// Tests that outside text cannot control a terminal, forge a log line or fill a disk.
#include "common/base/outside_text.h"

#include <gtest/gtest.h>

#include <string>

namespace hdps {
namespace {

TEST(EscapeUntrusted, KeepsWhatPeopleWrite) {
  for (const char* text : {"", "host-a 71", "C:\\x", "Zürich €5 \xf0\x9f\x98\x80", "a\\x1bb"}) {
    EXPECT_EQ(EscapeUntrusted(text), text);
  }
}

TEST(EscapeUntrusted, ShowsControlCharacters) {
  EXPECT_EQ(EscapeUntrusted("a\nb"), "a\\x0ab");
  EXPECT_EQ(EscapeUntrusted("\x1b[2J\x07\x7f\r\t"), "\\x1b[2J\\x07\\x7f\\x0d\\x09");
  EXPECT_EQ(EscapeUntrusted(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(EscapeUntrusted("\xc2\x9b\x31m"), "\\xc2\\x9b1m")
      << "the C1 form of an escape sequence";
  EXPECT_EQ(EscapeUntrusted("a\xe2\x80\xae"
                            "b"),
            "a\\xe2\\x80\\xaeb")
      << "right to left";
  EXPECT_EQ(EscapeUntrusted("a\xe2\x80\xa8"
                            "b"),
            "a\\xe2\\x80\\xa8"
            "b")
      << "a line separator";
}

TEST(EscapeUntrusted, ShowsBytesThatAreNoText) {
  EXPECT_EQ(EscapeUntrusted("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(EscapeUntrusted("\xc0\xaf"), "\\xc0\\xaf") << "longer than needed";
  EXPECT_EQ(EscapeUntrusted("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(EscapeUntrusted("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last one";
  EXPECT_EQ(EscapeUntrusted("a\xe2\x82"), "a\\xe2\\x82") << "cut off";
}

TEST(EscapeUntrusted, CutsAndSaysSo) {
  EXPECT_EQ(EscapeUntrusted(std::string(3000, 'x'), 30), std::string(14, 'x') + "... (3000 bytes)");
  EXPECT_EQ(EscapeUntrusted("\x01\x01\x01\x01\x01\x01", 22), "\\x01\\x01... (6 bytes)")
      << "never within a byte";
  EXPECT_EQ(EscapeUntrusted("€€€€€€€", 20), "€€... (21 bytes)") << "nor within a character";
  EXPECT_EQ(EscapeUntrusted("four", 3), "... (4 bytes)") << "no room even for the cut";
  for (size_t bytes = 0; bytes < 256; ++bytes) {
    const std::string shown = EscapeUntrusted(std::string(70000, static_cast<char>(bytes)));
    EXPECT_LE(shown.size(), kOutsideBytesMax);
    EXPECT_EQ(EscapeUntrusted(shown), shown);
  }
}

TEST(EscapeUntrusted, ChangesNothingOfWhatItGave) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  const std::string shown = EscapeUntrusted(every);
  EXPECT_EQ(EscapeUntrusted(shown), shown);
}

TEST(EscapeLines, KeepsLinesTabsAndWhatPeopleWriteAlone) {
  EXPECT_EQ(EscapeLines("Zürich\t5\n中文\n"), "Zürich\t5\n中文\n");
  EXPECT_EQ(EscapeLines("a\r\x1b[2J\x9b\xc2\x85\xe2\x80\xae"),
            "a\\x0d\\x1b[2J\\x9b\\xc2\\x85\\xe2\\x80\\xae");
  EXPECT_EQ(EscapeLines(std::string(9000, 'x')).size(), 9000u) << "uncut";
}

TEST(EscapeJson, MeansTheSame) {
  EXPECT_EQ(EscapeJson("{\n \"中\": \"ü\"}"), "{\n \"中\": \"ü\"}");
  EXPECT_EQ(EscapeJson("\"\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa9\""),
            "\"\\u007f\\u009b\\u202e\\u2069\"");
  EXPECT_EQ(EscapeJson("\"\xff\""), "\"\\ufffd\"");
}

TEST(LineRateLimit, AFloodIsCountedInsteadOfWritten) {
  LineRateLimit lines;
  uint64_t written = 0, told = 0;
  for (int64_t ms = 5000; ms < 15000; ++ms) {  // 1,000,000 lines in ten seconds.
    for (int i = 0; i < 100; ++i) written += lines.Take("refused", ms).has_value();
    if (const auto line = lines.LeftOut(ms)) told += std::stoull(*line);
  }
  EXPECT_EQ(written, LineRateLimit::kAtOnce + 9);
  const auto rest = lines.LeftOut(25000);
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(written + told + std::stoull(*rest), 1000000u);
  EXPECT_FALSE(lines.LeftOut(35000).has_value()) << "once told is enough";
}

TEST(LineRateLimit, NowAndThenALineIsWritten) {
  LineRateLimit lines;
  for (int64_t s = 1; s < 1000; ++s) {
    EXPECT_TRUE(lines.Take("refused", 1000 * s).has_value());
    EXPECT_FALSE(lines.LeftOut(1000 * s).has_value());
  }
}

}  // namespace
}  // namespace hdps
