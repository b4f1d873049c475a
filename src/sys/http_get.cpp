#include "sys/http_get.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace nlaunch::sys {

std::expected<HttpAnswer, std::string> http_get(const HttpUrl& url, Duration timeout, std::size_t most) {
  namespace asio = boost::asio;
  namespace beast = boost::beast;
  namespace http = beast::http;
  constexpr unsigned kHttp11 = 11;
  asio::io_context context;
  beast::tcp_stream stream(context);
  boost::system::error_code error;
  const auto finish = [&](const boost::system::error_code& result, auto&&...) { error = result; };
  const auto reason = [&] {
    return std::unexpected(error == beast::error::timeout ? "no answer in time" : error.message());
  };
  const auto endpoints =
      asio::ip::tcp::resolver(context).resolve(url.endpoint.host, url.endpoint.port, error);
  if (error) return reason();
  stream.expires_after(timeout);  // for everything that follows
  stream.async_connect(endpoints, finish);
  context.run();
  if (error) return reason();
  http::request<http::empty_body> request(http::verb::get, url.target, kHttp11);
  request.set(http::field::host, url.host_header);
  request.set(http::field::user_agent, "nlaunch");
  request.keep_alive(false);
  http::async_write(stream, request, finish);
  context.restart();
  context.run();
  if (error) return reason();
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(most);
  http::async_read(stream, buffer, parser, finish);
  context.restart();
  context.run();
  if (error) return reason();
  return HttpAnswer{static_cast<int>(parser.get().result_int()), std::move(parser.get().body())};
}

}  // namespace nlaunch::sys
