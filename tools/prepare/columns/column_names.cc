// Lists words in the names of columns, and what they hint at.
#include "tools/prepare/columns/column_names.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>

namespace hdps {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kUsers[] = {"user",    "users",   "uid",    "customer", "client",
                                       "member",  "visitor", "reader", "listener", "viewer",
                                       "shopper", "buyer",   "person", "reviewer"};

constexpr std::string_view kItems[] = {
    "item", "items",   "iid",  "movie", "movies", "film",     "product",    "sku",   "asin",
    "isbn", "article", "song", "track", "artist", "album",    "book",       "video", "ad",
    "news", "game",    "app",  "goods", "recipe", "business", "restaurant", "mid"};

// Words besides users and items for things that are numbered, and for numbers that are not amounts.
constexpr std::string_view kOthers[] = {
    "id",       "ids",    "uuid",        "guid",      "session", "device", "advertiser",
    "creative", "banner", "site",        "publisher", "query",   "doc",    "document",
    "store",    "shop",   "merchant",    "seller",    "vendor",  "brand",  "category",
    "cate",     "cat",    "subcategory", "genre",     "genres",  "tag",    "tags",
    "history",  "hist",   "cookie",      "keyword",   "url",     "domain", "host",
    "account",  "page",   "hash",        "code",      "entity",  "host",   "supplier"};

constexpr std::string_view kCodes[] = {
    "zip",     "zipcode",  "postal",     "postcode",   "region",     "city",    "state",
    "country", "county",   "district",   "location",   "occupation", "job",     "industry",
    "sector",  "dept",     "department", "profession", "channel",    "type",    "kind",
    "class",   "group",    "cluster",    "segment",    "status",     "gender",  "sex",
    "race",    "marital",  "browser",    "os",         "hour",       "weekday", "dow",
    "day",     "month",    "quarter",    "position",   "slot",       "bin",     "bucket",
    "range",   "campaign", "target",     "language",   "lang",       "recode",  "week",
    "weather", "season",   "degree",     "major",      "airline",    "carrier", "airport",
    "model",   "make",     "color",      "shape",      "flag",       "action",  "event",
    "label"};

constexpr std::string_view kQuantities[] = {
    "count",  "cnt",         "counts",    "num",       "qty",        "quantity",   "amount",
    "amt",    "price",       "cost",      "revenue",   "sales",      "salary",     "income",
    "wage",   "wages",       "fee",       "fare",      "balance",    "budget",     "total",
    "sum",    "avg",         "average",   "mean",      "max",        "min",        "median",
    "std",    "var",         "rate",      "ratio",     "percent",    "percentage", "pct",
    "share",  "score",       "rating",    "age",       "ages",       "year",       "years",
    "yr",     "duration",    "seconds",   "secs",      "minutes",    "mins",       "hours",
    "days",   "weeks",       "months",    "distance",  "length",     "len",        "width",
    "height", "weight",      "wgt",       "fnlwgt",    "size",       "sqft",       "volume",
    "temp",   "temperature", "humidity",  "windspeed", "wind",       "pressure",   "speed",
    "lat",    "lon",         "lng",       "latitude",  "longitude",  "visits",     "views",
    "clicks", "impressions", "purchases", "orders",    "gain",       "gains",      "loss",
    "losses", "frequency",   "freq",      "tenure",    "experience", "rank",       "stars",
    "depth",  "floors",      "rooms",     "bedrooms",  "bathrooms",  "population", "votes",
    "likes",  "followers",   "points",    "delta",     "diff",       "change",     "growth",
    "pdays",  "previous",    "bytes",     "dividends", "interest",   "debt",       "limit",
    "value",  "worth",       "level",     "degrees",   "calories",   "mileage",    "miles",
    "km",     "power",       "intensity", "persons",   "attempts",   "retries",    "pay",
    "bill"};

constexpr std::string_view kQuantityFronts[] = {
    "num",   "n",       "nb",      "count",  "number", "no",  "total", "avg",
    "mean",  "max",     "min",     "sum",    "median", "std", "log",   "days",
    "hours", "minutes", "seconds", "months", "years",  "time"};

std::string_view WithoutDigits(std::string_view word) {
  const size_t last = word.find_last_not_of("0123456789");
  return last == word.npos ? word : word.substr(0, last + 1);
}

// "userid" and "movieids" mean the same as "user" and "movie".
std::string_view WithoutId(std::string_view word) {
  if (word.size() > 3 && word.ends_with("ids")) return word.substr(0, word.size() - 3);
  if (word.size() > 2 && word.ends_with("id")) return word.substr(0, word.size() - 2);
  return word;
}

bool Has(Words words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

bool IsIn(Words words, std::string_view word) {
  return Has(words, word) || Has(words, WithoutId(word));
}

bool AnyIsIn(const std::vector<std::string>& name, Words words) {
  return std::ranges::any_of(name, [&](const std::string& word) { return IsIn(words, word); });
}

}  // namespace

std::vector<std::string> WordsOfName(const std::string& name) {
  std::vector<std::string> words;
  std::string word;
  const auto end = [&] {
    if (!word.empty()) words.emplace_back(WithoutDigits(word));
    word.clear();
  };
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (std::isalnum(c) == 0 && c < 0x80) {
      end();
      continue;
    }
    if (std::isupper(c) != 0 && i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0)
      end();
    word += static_cast<char>(std::tolower(c));
  }
  end();
  return words;
}

NameHint HintOf(const std::string& name) {
  const std::vector<std::string> words = WordsOfName(name);
  if (words.empty()) return NameHint::kNothing;
  const std::string& last = words.back();
  if (last == "timestamp" || last == "ts" || last == "datetime" || last == "epoch" ||
      (last == "time" && words.size() == 1)) {
    return NameHint::kMoment;
  }
  if (std::ranges::find(words, "id") != words.end()) return NameHint::kIdentity;
  const bool counted = std::ranges::any_of(
      words, [](const std::string& word) { return word == "per" || word == "since"; });
  if (counted || Has(kQuantities, last) || (words.size() > 1 && Has(kQuantityFronts, words[0]))) {
    return NameHint::kQuantity;
  }
  if (Has(kCodes, last)) return NameHint::kCode;
  if (IsIn(kUsers, last) || IsIn(kItems, last) || IsIn(kOthers, last)) {
    return NameHint::kIdentity;
  }
  if (AnyIsIn(words, kCodes)) return NameHint::kCode;
  return NameHint::kNothing;
}

bool NamesUser(const std::string& name) {
  return HintOf(name) == NameHint::kIdentity && AnyIsIn(WordsOfName(name), kUsers);
}

bool NamesItem(const std::string& name) {
  const std::vector<std::string> words = WordsOfName(name);
  const bool history = std::ranges::any_of(words, [](const std::string& word) {
    return word == "history" || word == "hist" || word == "category" || word == "cate";
  });
  return !history && HintOf(name) == NameHint::kIdentity && AnyIsIn(words, kItems) &&
         !AnyIsIn(words, kUsers);
}

bool NamesLabel(const std::string& name) {
  static constexpr std::string_view kNames[] = {
      "label",    "labels",    "target",     "targets",     "click",     "clicked",
      "is_click", "clk",       "is_clicked", "class",       "y",         "outcome",
      "response", "converted", "conversion", "purchase",    "purchased", "survived",
      "churn",    "churned",   "isclick",    "is_converted"};
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return Has(kNames, lower);
}

bool NamesRating(const std::string& name) {
  static constexpr std::string_view kNames[] = {"rating", "ratings", "stars",
                                                "score",  "grade",   "overall"};
  const std::vector<std::string> words = WordsOfName(name);
  return !words.empty() && Has(kNames, words.back()) &&
         !(words.size() > 1 && (words[0] == "avg" || words[0] == "mean" || words[0] == "average"));
}

}  // namespace hdps
