"""An order means its examination in the usual words of a ward, and never another one."""

from __future__ import annotations

import pytest

from data.conditions.table import load_tables
from diagnosis_agent.examinations import ORDERS, PANELS, covered_by, named, table_key

MEANT = {
    "cbc": ["CBC with differential", "hemoglobin and hematocrit", "急查血常规", "WBC count"],
    "troponin": ["Troponin T", "serial troponins", "high sensitivity troponin", "cardiac enzymes"],
    "leg_ultrasound": ["LE Doppler", "LE duplex", "lower limb venous duplex"],
    "head_ct": ["CT head without contrast", "stat head CT", "头颅CT平扫"],
    "chest_xray": ["CXR PA and lateral", "portable chest X-ray", "拍个胸片", "胸片正侧位"],
    "abdominal_ct": ["CT abdomen/pelvis with IV contrast", "contrast-enhanced CT of the abdomen and pelvis"],
    "brain_mri": ["MRI brain with and without contrast", "头颅MRI平扫+弥散"],
    "liver_panel": ["ALT and AST", "liver function panel", "查肝功能"],
    "coagulation": ["PT/INR"],
    "blood_culture": ["two sets of blood cultures", "血培养两套"],
    "csf": ["lumbar puncture and CSF cell count"],
    "fasting_glucose": ["fasting blood glucose", "serum glucose level"],
}  # fmt: skip
NONE = [
    "CBC with CRP", "CBC/CRP", "CT", "MRI", "blood", "thyroid", "thyroid scan", "lung", "sacroiliac CT", "dual-energy CT",
    "检查", "彩超", "hepatitis A and B", "hepatitis A/B", "乙肝丙肝", "hepatitis E IgM", "24h urine calcium",
    "24h urine glucose", "24h尿钙", "BMP and CBC", "TVU",
    "生化三项",
    "LP with CSF glucose, CRP",
    "MRI of the heat",  # head or heart
    "densitometry densitometrie", "rheumatoid rheumatoidd",  # one word of a name of two, twice
]  # fmt: skip


BESIDE_THE_TABLES = {
    "basic metabolic panel": ["BMP", "stat BMP", "Chem-7", "查一下BMP"],
    "comprehensive metabolic panel": ["CMP", "repeat CMP", "生化全套"],
    "lactate": ["lactic acid level", "急查乳酸"],
    "abdominal X-ray": ["KUB", "upright abdominal X-ray", "立位腹平片"],
    "pregnancy test": ["beta-hCG", "urine hCG", "血HCG"],
    "pelvic ultrasound": ["urgent pelvic US", "盆腔彩超"],
    "transvaginal ultrasound": ["TVUS"],
    "24-hour urine protein": ["24h urine protein", "24小时尿蛋白定量"],
    "capillary glucose": ["fingerstick glucose", "指尖血糖", "查个指尖血糖", "POC glucose"],
    "random glucose": ["random blood glucose", "随机血糖"],
    "rheumatic panel": ["风湿三项", "查风湿三项"],
    "rheumatic panel with ESR": ["风湿四项"],
    "autoimmune panel": ["风湿全套"],
    "tumour markers": ["肿瘤标志物", "肿瘤标志物五项", "tumor markers"],
    "venous blood gas": ["VBG", "stat venous blood gas"],
    "hepatitis serology": ["hepatitis panel", "肝炎全套"],
    "CT of the neck": ["CT neck with contrast"],
    "MRI of the cervical spine": ["cervical spine MRI", "颈椎MRI"],
    "coronary angiography": ["cardiac cath", "冠脉造影"],
    "sigmoidoscopy": ["flexible sigmoidoscopy"],
}  # fmt: skip


@pytest.mark.parametrize(("key", "order"), [(key, one) for key in MEANT for one in MEANT[key]])
def test_usual_words_mean_their_examination(key: str, order: str) -> None:
    name = named(order)
    assert name
    assert table_key(name) == key


@pytest.mark.parametrize(
    ("name", "order"), [(name, one) for name, orders in BESIDE_THE_TABLES.items() for one in orders]
)
def test_what_no_invented_case_needs_is_understood_as_itself(name: str, order: str) -> None:
    assert named(order) == name


@pytest.mark.parametrize("order", NONE)
def test_another_examination_and_several_are_none(order: str) -> None:
    assert named(order) is None


def test_every_further_name_is_understood() -> None:
    examinations = load_tables().examinations
    for key, names in ORDERS["names"].items():
        assert {named(name) for name in names} == {examinations[key].en}, key
    for table in (
        ORDERS["further"],
        {name: one["names"] for name, one in ORDERS["panels"].items()},
    ):
        for name, others in table.items():
            assert {named(other) for other in (name, *others)} == {name}


def test_what_is_sampled_may_be_listed_behind_an_order() -> None:
    assert table_key(named("LP with CSF cell count, glucose and protein") or "") == "csf"


def test_a_panel_has_its_parts_and_smaller_panels() -> None:
    larger = covered_by("comprehensive metabolic panel")
    assert PANELS["basic metabolic panel"] | {"basic metabolic panel"} <= larger
    assert covered_by("electrolytes") == {"electrolytes"}


def test_a_panel_may_hold_what_no_invented_case_needs() -> None:
    assert "C-reactive protein" in covered_by("rheumatic panel")
    assert "carcinoembryonic antigen" in covered_by("tumour markers")
