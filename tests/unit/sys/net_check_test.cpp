#include "sys/net_check.h"

#include <gtest/gtest.h>

namespace nlaunch::sys {
namespace {

TEST(ParseEndpoint, TakesHostAndPort) {
  EXPECT_EQ(parse_endpoint("n1:80")->host, "n1");
  EXPECT_EQ(parse_endpoint("[::1]:8000")->host, "::1");
  EXPECT_EQ(parse_endpoint("[::1]:8000")->port, "8000");
}

TEST(ParseEndpoint, SaysWhatIsWrong) {
  for (const auto* wrong : {"n1", ":80", "n1:", "n1:0", "n1:65536", "n1:http"}) {
    const auto parsed = parse_endpoint(wrong);
    ASSERT_FALSE(parsed.has_value()) << wrong;
    EXPECT_EQ(parsed.error(), "'" + std::string(wrong) + "' is not HOST:PORT with a port from 1 to 65535");
  }
}

TEST(ParseHttpUrl, TakesHostPortAndPath) {
  const auto url = parse_http_url("http://n1:8000/health?deep=1");
  ASSERT_TRUE(url.has_value());
  EXPECT_EQ(url->endpoint.host, "n1");
  EXPECT_EQ(url->endpoint.port, "8000");
  EXPECT_EQ(url->host_header, "n1:8000");
  EXPECT_EQ(url->target, "/health?deep=1");
  EXPECT_EQ(parse_http_url("http://n1")->endpoint.port, "80");
  EXPECT_EQ(parse_http_url("http://n1")->target, "/");
  EXPECT_EQ(parse_http_url("http://[::1]")->endpoint.host, "::1");
}

TEST(ParseHttpUrl, SaysWhatIsWrong) {
  EXPECT_EQ(parse_http_url("https://n1").error(),
            "'https://n1' does not start with http:// (https is not supported)");
  for (const auto* wrong : {"http://n1:x/", "http://n1:65536", "http:///health"}) {
    EXPECT_EQ(parse_http_url(wrong).error(),
              "'" + std::string(wrong) + "' is not http://HOST[:PORT][/PATH] with a port from 1 to 65535");
  }
}

}  // namespace
}  // namespace nlaunch::sys
