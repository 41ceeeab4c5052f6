from __future__ import annotations

from scoring.closeness import closeness
from scoring.text import fragments


def test_closeness_by_example():
    assert closeness("一次15毫克", "我每天一次15毫克") == 1
    assert 0.5 < closeness("一次15毫克", "每次15毫克") < 1
    assert (
        closeness("一次15毫克", "一次20毫克")
        == closeness("一次15毫克", "用")
        == closeness("一次15毫克", "")
        == 0
    )
    assert closeness("5毫克", "15毫克") == closeness("15毫克", "1.5毫克") == 0
    assert fragments("比例1:2，约1.5克。每日3次，") == ["比例12", "约1.5克", "每日3次"]
