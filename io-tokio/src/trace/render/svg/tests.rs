use super::*;
use crate::trace::render::specimen::{plain, specimen};

#[test]
#[ignore]
fn look() {
    std::fs::write("/tmp/draw/s.svg", svg(&specimen(30, plain), 40)).unwrap();
    std::fs::write("/tmp/draw/s.html", crate::trace::render::page(&specimen(60, plain))).unwrap();
    std::fs::write("/tmp/draw/l.html", crate::trace::render::page(&specimen(12500, plain))).unwrap();
}
